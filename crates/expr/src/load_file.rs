//! LOAD_FILE: a file of the server as a value.

use cohort_types::{SqlResult, Value};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::expr::Expr;
use crate::expr_type::ExprType;
use crate::table::Function;
use crate::typing::binary_string;

pub(crate) static FUNCTIONS: &[Function] = &[Function::volatile("load_file", 1, 1, type_of_file, load_file)];

/// What a statement may see of a file of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadedFile {
    /// There is no such file, or the session may not read it.
    Missing,
    /// So many bytes, which are more than were asked for.
    TooLong(u64),
    Bytes(Vec<u8>),
}

fn type_of_file(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(binary_string(16 << 20).into_long_text().with_nullable(true))
}

/// NULL for a file that cannot be read, whatever the reason; a warning as well for one that is too long.
fn load_file(a: Args<'_>) -> SqlResult<Value> {
    let name = or_null!(a.text(0));
    match a.ctx.hooks.load_file(&String::from_utf8_lossy(&name), a.ctx.env.max_allowed_packet)? {
        LoadedFile::Missing => Ok(Value::Null),
        LoadedFile::TooLong(bytes) => a.fits_packet(bytes).map(|_| Value::Null),
        LoadedFile::Bytes(bytes) => a.string(bytes),
    }
}
