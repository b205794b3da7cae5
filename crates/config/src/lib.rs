//! Settings and counters of the server.
//!
//! | module | concept |
//! |---|---|
//! | `setting` | [`Setting`]: name, meaning, type, bounds and scope of one system variable |
//! | `table` | [`VarId`] and the table of all settings |
//! | `inert` | no-op variables: settings of MariaDB that change nothing here |
//! | `value` | [`VarValue`]; conversion between text and values |
//! | `runtime` | [`Globals`] and [`SessionVars`]: the current values; SET and SHOW VARIABLES |
//! | `option_file` | my.cnf reader |
//! | `options` | settings from the command line and option files |
//! | `build` | [`Build`]: Cohort's own version and revision |
//! | `help` | texts of `--help` |
//! | `shell` | manual page for `man`, completions for shells |
//! | `manual` | settings page of the documentation, sample option file |
//! | `status` | [`Status`]: counters of SHOW STATUS |
//!
//! Each setting is defined once, in `table` or `inert`. The command line, option files, SET, SHOW VARIABLES,
//! the sample file, the documentation and the manual page are all derived from it.

mod build;
mod exit;
mod help;
mod inert;
mod manual;
mod option_file;
mod options;
mod runtime;
mod setting;
mod shell;
mod status;
mod table;
mod value;

pub use build::Build;
pub use exit::EXIT_CODES;
pub use manual::{manual_page, sample_file};
pub use option_file::{DefaultsPlan, FileOption, FileOptions, OptionFileError};
pub use options::{LogErrorOption, Options, StartupError, StartupRequest, load};
pub use runtime::{Globals, SessionVars, SetError, SetNote, settable};
pub use setting::{Access, Acts, Kind, Scope, Setting, SettingScope};
pub use status::{Counter, HeldGauge, Status, StatusSource};
pub use table::VarId;
pub use value::VarValue;

/// The version that clients, tools and the binary log see. It must contain `MariaDB`, which tools test for.
pub const VERSION: &str = "10.11.99-MariaDB-cohort";
