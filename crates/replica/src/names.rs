//! Names of relay log files: derived from the settings, and checked for conflicts.

use std::path::Path;

use cohort_binlog::BinlogName;
use cohort_config::{Globals, VarId};
use cohort_vfs::resolved;

/// Returns the base name of relay log files from `relay_log`, without any extension of the file name.
pub fn relay_base_name(globals: &Globals) -> String {
    let given = globals.text(VarId::RelayLog);
    match given.as_deref() {
        None | Some("") => {
            let host = globals.text(VarId::Hostname);
            let host = host.as_deref().unwrap_or("localhost");
            format!("{}-relay-bin", host.split('.').next().unwrap_or(host))
        }
        Some(given) => without_extension(given).to_owned(),
    }
}

/// Returns a path without the extension of its last component.
fn without_extension(path: &str) -> &str {
    let file_at = path.rfind('/').map_or(0, |slash| slash + 1);
    let stem = path[file_at..].find('.').map_or(path.len(), |dot| file_at + dot);
    &path[..stem]
}

/// Returns the base name for one connection.
pub fn base_of(globals: &Globals, connection: &str) -> String {
    let base = relay_base_name(globals);
    // Characters other than letters, digits and `_` are written as their code.
    let escape = |c: char| match c.is_alphanumeric() || c == '_' {
        true => c.to_string(),
        false => format!("@{:04x}", c as u32),
    };
    match connection {
        "" => base,
        name => format!("{base}-{}", name.chars().map(escape).collect::<String>()),
    }
}

/// Returns an error if the relay log name is invalid or collides with the binary log. `others` are the relay
/// logs of the known connections.
pub fn check_relay_log(
    globals: &Globals,
    datadir: &Path,
    log_bin: Option<&str>,
    others: &[String],
) -> Result<(), String> {
    let base = relay_base_name(globals);
    if base.is_empty() || base.ends_with('/') {
        let given = globals.text(VarId::RelayLog);
        let given = given.as_deref().unwrap_or("");
        return Err(format!(
            "Path '{given}' is a directory name, please specify a file name for --relay-log option"
        ));
    }
    let Some(log_bin) = log_bin else { return Ok(()) };
    let binlog = BinlogName::new(datadir, log_bin);
    let same =
        std::iter::once(&base).chain(others).find(|base| are_same(&BinlogName::new(datadir, base), &binlog));
    match same {
        Some(base) => Err(format!(
            "Binary log and relay log have the same files: --log-bin={log_bin} and relay log '{base}'. Please \
             specify another name for one of them"
        )),
        None => Ok(()),
    }
}

/// Returns whether two names refer to the same files.
pub fn are_same(a: &BinlogName, b: &BinlogName) -> bool {
    a.base() == b.base() && resolved(a.dir()) == resolved(b.dir())
}

#[cfg(test)]
mod tests {
    use cohort_config::VarValue;

    use super::*;

    #[test]
    fn only_an_extension_of_the_file_name_is_dropped_and_the_binary_log_keeps_its_name() {
        let globals = Globals::new();
        let datadir = tempfile::tempdir().expect("a folder");
        let datadir = datadir.path();
        for (given, base, log_bin, is_refused) in [
            ("./rel", "./rel", "binlog", false),
            ("/p/dd.1/rel", "/p/dd.1/rel", "binlog", false),
            ("/p/dd.1/rel.x.y", "/p/dd.1/rel", "binlog", false),
            ("rel.log", "rel", "rel.bin", true),
            ("./rel", "./rel", "rel", true),
            ("rel", "rel", "./sub/../rel", true),
            ("binlog", "binlog", "binlog", true),
            ("logs/binlog", "logs/binlog", "binlog", false),
            ("./", "./", "binlog", true),
            ("logs/.x", "logs/", "other", true),
            ("..", "", "other", true),
        ] {
            std::fs::create_dir_all(datadir.join("sub")).expect("made");
            globals.put(VarId::RelayLog, &VarValue::text(given));
            assert_eq!(relay_base_name(&globals), base, "{given}");
            let checked = check_relay_log(&globals, datadir, Some(log_bin), &[]);
            assert_eq!(checked.is_err(), is_refused, "{given} {log_bin}: {checked:?}");
        }
        globals.put(VarId::RelayLog, &VarValue::text("rel"));
        let others = ["old-relay-bin".to_owned()];
        assert!(check_relay_log(&globals, datadir, Some("old-relay-bin"), &others).is_err());
        assert!(check_relay_log(&globals, datadir, None, &others).is_ok());
        assert_eq!(base_of(&globals, "a-b"), "rel-a@002db");
    }
}
