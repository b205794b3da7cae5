//! Settings and counters of the server: what an operator sets and what an operator reads.
//!
//! | module | concept |
//! |---|---|
//! | `setting` | [`Setting`]: name, meaning, type, bounds, scope of one system variable |
//! | `table` | [`VarId`] and the one table of all settings |
//! | `inert` | those settings of MariaDB that change nothing here |
//! | `value` | [`VarValue`]; texts to values and back |
//! | `runtime` | [`Globals`] and [`SessionVars`]: the values in force; SET and SHOW VARIABLES |
//! | `option_file` | my.cnf reader |
//! | `options` | command line and option files to settings |
//! | `build` | [`Build`]: Cohort's own version and revision |
//! | `help` | texts of `--help` |
//! | `shell` | manual page of `man`, completions of shells |
//! | `manual` | manual page and sample file |
//! | `status` | [`Status`]: counters of SHOW STATUS |
//!
//! A setting exists once, in `table`; the command line, option files, SET, SHOW VARIABLES, the sample file
//! and the manual page are all made from it.

mod build;
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
pub use manual::{manual_page, sample_file};
pub use option_file::{DefaultsPlan, OptionFileError};
pub use options::{EXIT_CODES, Options, StartupError, StartupRequest, load};
pub use runtime::{Globals, SessionVars, SetError, SetNote, settable};
pub use setting::{Access, Kind, Scope, Setting, SettingScope};
pub use status::{Counter, HeldGauge, Status, StatusSource};
pub use table::VarId;
pub use value::VarValue;

/// The version that clients, tools and the binary log see. It must contain `MariaDB`: tools switch on it.
pub const VERSION: &str = "10.11.99-MariaDB-cohort";
