//! Exit codes of the program.

pub(crate) const EXIT_UNKNOWN_OPTION: i32 = 2;
pub(crate) const EXIT_ARGUMENT_REQUIRED: i32 = 5;
pub(crate) const EXIT_UNKNOWN_VARIABLE: i32 = 7;
pub(crate) const EXIT_BAD_NUMBER: i32 = 9;
pub(crate) const EXIT_BAD_VALUE: i32 = 13;

/// Exit codes of the program with their meaning.
pub const EXIT_CODES: &[(i32, &str)] = &[
    (0, "stopped, or the task was done"),
    (1, "the start failed, or a stop took too long: the error log says why"),
    (EXIT_UNKNOWN_OPTION, "unknown option"),
    (EXIT_ARGUMENT_REQUIRED, "an option without its value"),
    (EXIT_UNKNOWN_VARIABLE, "unknown variable (--name=value)"),
    (EXIT_BAD_NUMBER, "a number with an unknown suffix"),
    (EXIT_BAD_VALUE, "a value that the setting does not have, or that is rejected"),
];
