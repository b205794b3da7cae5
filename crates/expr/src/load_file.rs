//! LOAD_FILE: a file of the server as a value.

use cohort_types::{SqlResult, Value};

use crate::LoadedFile;
use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::expr::Expr;
use crate::expr_type::ExprType;
use crate::function::{Function, Nowhere, Unsafe};
use crate::typing::binary_string;

pub(crate) static FUNCTIONS: &[Function] =
    &[Function::new("load_file", 1, 1, type_of_file, load_file, Unsafe, Nowhere).volatile()];

fn type_of_file(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(binary_string(16 << 20).into_long_text().with_nullable(true))
}

/// Returns NULL for a file that cannot be read, with a warning only if it is too long.
fn load_file(a: Args<'_>) -> SqlResult<Value> {
    let name = or_null!(a.text(0));
    match a.ctx.hooks.load_file(&String::from_utf8_lossy(&name), a.ctx.env.max_allowed_packet)? {
        LoadedFile::Missing => Ok(Value::Null),
        LoadedFile::TooLong(bytes) => a.fits_packet(bytes).map(|_| Value::Null),
        LoadedFile::Bytes(bytes) => a.string(bytes),
    }
}
