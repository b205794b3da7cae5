//! Option files (my.cnf), read like MariaDB's programs do.
//!
//! ```text
//! # comment            ; comment
//! [group]
//! name = value         name            name = "quoted # value"
//! !include FILE        !includedir DIRECTORY   (its *.cnf, by name)
//! ```
//!
//! Values end at `#` outside of quotes; `\b \t \n \r \\ \s \" \'` are escapes. Unless options choose other
//! files, a program reads `/etc/my.cnf`, `/etc/mysql/my.cnf`, `$MARIADB_HOME/my.cnf` (else `$MYSQL_HOME`) and
//! `~/.my.cnf`, if they exist. Of several values the last one counts, whatever its group.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Groups that the server reads.
pub(crate) const GROUPS: &[&str] = &[
    "mysqld",
    "server",
    "mysqld-10.11",
    "mariadb",
    "mariadb-10.11",
    "mariadbd",
    "mariadbd-10.11",
    "client-server",
    "cohort",
    "cohortd",
];

/// Maximum nesting of includes, as in MariaDB.
const DEPTH_MAX: usize = 10;

/// Why an option file cannot be used.
#[derive(Debug)]
pub enum OptionFileError {
    /// A required file cannot be read.
    Unreadable(PathBuf, io::Error),
    /// An option line before the first group.
    NoGroup(PathBuf, usize),
    /// `[` without `]`.
    BadGroup(PathBuf, usize),
    /// `!something` other than include and includedir, or includes nested too deeply.
    BadDirective(PathBuf, usize),
}

impl fmt::Display for OptionFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionFileError::Unreadable(path, error) => {
                write!(f, "Could not open required defaults file: {} ({error})", path.display())
            }
            OptionFileError::NoGroup(path, line) => {
                write!(
                    f,
                    "Found option without preceding group in config file: {} at line: {line}",
                    path.display()
                )
            }
            OptionFileError::BadGroup(path, line) => {
                write!(f, "Wrong group definition in config file: {} at line {line}", path.display())
            }
            OptionFileError::BadDirective(path, line) => {
                write!(f, "Wrong '!' directive in config file: {} at line {line}", path.display())
            }
        }
    }
}

impl std::error::Error for OptionFileError {}

/// The files and groups to read, from the options that must come first on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefaultsPlan {
    /// --no-defaults.
    pub none: bool,
    /// --defaults-file: only this file.
    pub file: Option<PathBuf>,
    /// --defaults-extra-file: read after the global files.
    pub extra: Option<PathBuf>,
    /// --defaults-group-suffix: with suffix 1, `[mysqld]` and `[mysqld1]`.
    pub suffix: Option<String>,
    /// --print-defaults.
    pub print: bool,
}

/// An option of a file.
#[derive(Clone, Debug)]
pub struct FileOption {
    /// As an argument: `--name=value` or `--name`.
    pub argument: String,
    pub group: String,
    pub file: PathBuf,
    pub line: usize,
}

/// Options of all files, in the order in which they were read.
#[derive(Clone, Debug, Default)]
pub struct FileOptions {
    pub arguments: Vec<FileOption>,
    pub warnings: Vec<String>,
}

impl DefaultsPlan {
    /// Takes the leading options about option files off the command line.
    pub(crate) fn take(arguments: &[String]) -> (DefaultsPlan, &[String]) {
        let mut plan = DefaultsPlan::default();
        let mut rest = arguments;
        while let [first, tail @ ..] = rest {
            let (name, value) = first.split_once('=').map_or((first.as_str(), None), |(n, v)| (n, Some(v)));
            match (name, value) {
                ("--no-defaults", None) => plan.none = true,
                ("--print-defaults", None) => plan.print = true,
                ("--defaults-file", Some(path)) => plan.file = Some(path.into()),
                ("--defaults-extra-file", Some(path)) => plan.extra = Some(path.into()),
                ("--defaults-group-suffix", Some(suffix)) => plan.suffix = Some(suffix.to_owned()),
                _ => break,
            }
            rest = tail;
        }
        (plan, rest)
    }

    /// Reads these groups of the files.
    pub fn read(&self, groups: &[&str]) -> Result<FileOptions, OptionFileError> {
        let variable = |names: [&str; 2]| names.into_iter().find_map(std::env::var_os);
        let suffix = self.suffix.clone().or_else(|| {
            variable(["MARIADB_GROUP_SUFFIX", "MYSQL_GROUP_SUFFIX"])
                .map(|suffix| suffix.to_string_lossy().into_owned())
        });
        let mut reader = FileReader::new(groups, suffix.as_deref());
        if self.none {
            return Ok(reader.found);
        }
        if let Some(file) = &self.file {
            reader.file(file, Need::Must, 0)?;
            return Ok(reader.found);
        }
        for path in ["/etc/my.cnf", "/etc/mysql/my.cnf"] {
            reader.file(Path::new(path), Need::May, 0)?;
        }
        if let Some(home) = variable(["MARIADB_HOME", "MYSQL_HOME"]) {
            reader.file(&Path::new(&home).join("my.cnf"), Need::May, 0)?;
        }
        if let Some(extra) = &self.extra {
            reader.file(extra, Need::Must, 0)?;
        }
        if let Some(home) = std::env::var_os("HOME") {
            reader.file(&Path::new(&home).join(".my.cnf"), Need::May, 0)?;
        }
        Ok(reader.found)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// A missing file is an error.
    Must,
    May,
}

/// The group of a line.
enum Group {
    /// Before the first one.
    None,
    Skipped,
    Read(String),
}

struct FileReader {
    groups: Vec<String>,
    found: FileOptions,
}

impl FileReader {
    fn new(groups: &[&str], suffix: Option<&str>) -> FileReader {
        let plain = groups.iter().map(|group| (*group).to_owned());
        let suffixed = suffix.into_iter().flat_map(|s| groups.iter().map(move |group| format!("{group}{s}")));
        FileReader { groups: plain.chain(suffixed).collect(), found: FileOptions::default() }
    }

    fn file(&mut self, path: &Path, need: Need, depth: usize) -> Result<(), OptionFileError> {
        let text = match fs::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(_) if need == Need::May => return Ok(()),
            Err(error) => return Err(OptionFileError::Unreadable(path.to_owned(), error)),
        };
        if fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o002 != 0) {
            let warning = format!("World-writable config file '{}' is ignored", path.display());
            self.found.warnings.push(warning);
            return Ok(());
        }
        let mut group = Group::None;
        for (n, line) in text.lines().enumerate() {
            self.line(path, n + 1, line.trim(), &mut group, depth)?;
        }
        Ok(())
    }

    /// Processes a line.
    fn line(
        &mut self,
        path: &Path,
        number: usize,
        line: &str,
        group: &mut Group,
        depth: usize,
    ) -> Result<(), OptionFileError> {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return Ok(());
        }
        if let Some(directive) = line.strip_prefix('!') {
            return self.include(path, number, directive, depth);
        }
        if let Some(rest) = line.strip_prefix('[') {
            let name =
                rest.split_once(']').ok_or_else(|| OptionFileError::BadGroup(path.to_owned(), number))?.0;
            let known = self.groups.iter().find(|known| *known == name.trim());
            *group = known.map_or(Group::Skipped, |known| Group::Read(known.clone()));
            return Ok(());
        }
        match group {
            Group::None => Err(OptionFileError::NoGroup(path.to_owned(), number)),
            Group::Skipped => Ok(()),
            Group::Read(group) => {
                let (argument, group, file) = (option_of(line), group.clone(), path.to_owned());
                self.found.arguments.push(FileOption { argument, group, file, line: number });
                Ok(())
            }
        }
    }

    fn include(
        &mut self,
        path: &Path,
        line: usize,
        directive: &str,
        depth: usize,
    ) -> Result<(), OptionFileError> {
        let bad = || OptionFileError::BadDirective(path.to_owned(), line);
        let (what, target) = directive.split_once(char::is_whitespace).ok_or_else(bad)?;
        let target = Path::new(target.trim());
        if depth >= DEPTH_MAX {
            return Err(bad());
        }
        match what {
            "include" => self.file(target, Need::Must, depth + 1),
            "includedir" => {
                let entries =
                    fs::read_dir(target).map_err(|e| OptionFileError::Unreadable(target.to_owned(), e))?;
                let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
                files.retain(|file| file.extension().is_some_and(|ext| ext == "cnf"));
                files.sort();
                files.iter().try_for_each(|file| self.file(file, Need::May, depth + 1))
            }
            _ => Err(bad()),
        }
    }
}

/// Converts `name = value` to an argument.
fn option_of(line: &str) -> String {
    let line = without_comment(line);
    match line.split_once('=') {
        None => format!("--{}", line.trim()),
        Some((name, value)) => format!("--{}={}", name.trim(), unescape(unquote(value.trim()))),
    }
}

fn without_comment(line: &str) -> &str {
    let (mut quote, mut escaped) = (None, false);
    for (at, c) in line.char_indices() {
        if escaped {
            escaped = false;
        } else if quote == Some(c) {
            quote = None;
        } else if c == '\\' && quote.is_some() {
            escaped = true;
        } else if quote.is_none() && matches!(c, '\'' | '"') {
            quote = Some(c);
        } else if quote.is_none() && c == '#' {
            return &line[..at];
        }
    }
    line
}

fn unquote(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner;
        }
    }
    value
}

fn unescape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('b') => out.push('\u{8}'),
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('s') => out.push(' '),
            Some(c @ ('\\' | '"' | '\'')) => out.push(c),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_arguments() {
        for (line, expected) in [
            ("port=3307", "--port=3307"),
            ("max-connections = 10  # few", "--max-connections=10"),
            ("skip-networking", "--skip-networking"),
            ("init_connect = \"SET x='#'\" # why", "--init_connect=SET x='#'"),
            ("tmpdir = '/with space'", "--tmpdir=/with space"),
            ("a = \\ttab\\sspace\\\\end\\q", "--a=\ttab space\\end\\q"),
            ("empty =", "--empty="),
        ] {
            assert_eq!(option_of(line), expected);
        }
    }

    #[test]
    fn groups_includes_and_errors() {
        let directory = std::env::temp_dir().join(format!("cohort-config-{}", std::process::id()));
        let sub = directory.join("conf.d");
        fs::create_dir_all(&sub).expect("created");
        let write = |path: &Path, text: &str| fs::write(path, text).expect("written");
        let main = directory.join("my.cnf");
        write(&sub.join("b.cnf"), "[mysqld]\nfrom=b\n");
        write(&sub.join("a.cnf"), "[client]\nfrom=client\n[mariadb-10.11]\nfrom=a\n");
        write(&sub.join("c.ignored"), "[mysqld]\nfrom=c\n");
        let text = format!("; all\n[cohortd]\nx=1\n!includedir {}\n[mysqld1]\nsuffixed\n", sub.display());
        write(&main, &text);
        let read = |suffix: Option<&str>| {
            let plan = DefaultsPlan {
                file: Some(main.clone()),
                suffix: suffix.map(str::to_owned),
                ..DefaultsPlan::default()
            };
            plan.read(GROUPS)
                .map(|found| found.arguments.into_iter().map(|option| option.argument).collect::<Vec<_>>())
        };
        assert_eq!(read(None).expect("good"), ["--x=1", "--from=a", "--from=b"]);
        assert_eq!(read(Some("1")).expect("good").last().map(String::as_str), Some("--suffixed"));
        write(&main, "x=1\n");
        assert!(read(None).expect_err("bad").to_string().contains("without preceding group"));
        write(&main, "[mysqld\n");
        assert!(read(None).expect_err("bad").to_string().contains("Wrong group definition"));
        write(&main, &format!("!include {}\n", main.display()));
        assert!(read(None).is_err(), "a file that includes itself");
        write(&main, "[mysqld]\nx=1\n");
        fs::set_permissions(&main, PermissionsExt::from_mode(0o666)).expect("set");
        assert_eq!(read(None).expect("ignored").len(), 0);
        fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn options_about_files_come_first() {
        let arguments: Vec<String> =
            ["--defaults-file=/a", "--print-defaults", "--port=1", "--no-defaults"].map(String::from).into();
        let (plan, rest) = DefaultsPlan::take(&arguments);
        assert_eq!((plan.file.as_deref(), plan.print, plan.none), (Some(Path::new("/a")), true, false));
        assert_eq!(rest, &arguments[2..]);
    }
}
