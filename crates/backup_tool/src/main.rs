//! `cohort-backup`: see `cohort-backup --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    cohort_backup_tool::cli::main()
}
