//! Conversion of system variables and their errors to SQL.

use cohort_config::{SetError, VarValue};
use cohort_types::{ErrorCode, SqlError, Value};

/// Converts a variable's value to an SQL value.
pub fn to_value(value: &VarValue) -> Value {
    match value {
        VarValue::Null => Value::Null,
        VarValue::Bool(b) => Value::Int((*b).into()),
        VarValue::Int(n) => Value::Int(*n),
        VarValue::UInt(n) => Value::UInt(*n),
        VarValue::Double(v) => Value::Double(*v),
        VarValue::Text(text) => Value::text(&**text),
    }
}

/// Converts a refused SET to the error for the client.
pub fn set_error(error: SetError) -> SqlError {
    let code = match &error {
        SetError::Unknown(_) => ErrorCode::UnknownSystemVariable,
        SetError::ReadOnly(_) | SetError::NoSessionValue(_) | SetError::NoGlobalValue(_) => {
            ErrorCode::IncorrectGlobalLocalVar
        }
        SetError::SessionReadOnly(_) => ErrorCode::VariableIsReadonly,
        SetError::GlobalOnly(_) => ErrorCode::GlobalVariable,
        SetError::SessionOnly(_) => ErrorCode::LocalVariable,
        SetError::WrongValue(..) => ErrorCode::WrongValueForVar,
        SetError::WrongType(_) => ErrorCode::WrongTypeForVar,
        SetError::UnknownCharset(_) => ErrorCode::UnknownCharacterSet,
        SetError::UnknownCollation(_) => ErrorCode::UnknownCollation,
    };
    SqlError::new(code, error.to_string())
}
