//! The manual page for `man` and the completions for shells, generated from the texts of `--help`.

use std::fmt::Write;

use crate::build::Build;
use crate::exit::EXIT_CODES;
use crate::help::{GROUPS, OPTION_FILES, SYNOPSIS, description, options, plain};
use crate::manual::default_text;
use crate::setting::{Kind, Setting};

/// Signals that a running server handles, with their meaning.
const SIGNALS: &[(&str, &str)] = &[
    ("SIGTERM, SIGINT, SIGQUIT", "stop: running statements are killed"),
    ("SIGHUP", "close and open the log files again, as FLUSH LOGS does"),
];

/// Returns the manual page `cohortd(8)`.
pub(crate) fn man_page(build: &Build) -> String {
    let mut out = format!(
        ".TH COHORTD 8 \"\" \"Cohort {}\" \"System administration\"\n.ad l\n.SH NAME\ncohortd \\- MariaDB-compatible database \
         server\n.SH SYNOPSIS\n{}\n",
        roff(build.version),
        roff(SYNOPSIS)
    );
    for group in GROUPS {
        section(&mut out, group.title);
        for (option, text) in group.options {
            entry(&mut out, option, text);
        }
    }
    section(&mut out, "Settings");
    let kept = options().filter(|setting| setting.has_effect());
    for setting in kept {
        let default = match plain(default_text(setting)) {
            none if none.is_empty() => String::new(),
            text => format!(" Default: {text}."),
        };
        entry(&mut out, &usage(setting), &format!("{}{default}", description(setting)));
    }
    push(
        &mut out,
        ".PP\nSettings that are accepted without effect are not in this list; \\fBcohortd \\-\\-help \\-\\-verbose\\fR has them.\n",
    );
    section(&mut out, "Files");
    for (title, text) in OPTION_FILES {
        entry(&mut out, title, text);
    }
    section(&mut out, "Exit status");
    for (code, text) in EXIT_CODES {
        entry(&mut out, &code.to_string(), text);
    }
    section(&mut out, "Signals");
    for (signal, text) in SIGNALS {
        entry(&mut out, signal, text);
    }
    section(&mut out, "See also");
    push(&mut out, "cohort\\-bench(1), mariadb(1), mariadb\\-dump(1)\n");
    out
}

/// Returns the completions for a shell, or `None` if it is not known.
pub(crate) fn completions(shell: &str) -> Option<String> {
    let words: Vec<(String, String)> = words().collect();
    Some(match shell {
        "bash" => {
            let names: Vec<&str> = words.iter().map(|(name, _)| name.as_str()).collect();
            format!(
                "_cohortd() {{\n    compopt -o nospace\n    COMPREPLY=($(compgen -W '{}' -- \"${{COMP_WORDS[COMP_CWORD]}}\"))\n}}\n\
                 complete -o default -F _cohortd cohortd\n",
                names.join(" ")
            )
        }
        "fish" => words.iter().fold(String::new(), |mut out, (name, text)| {
            let name = name.trim_start_matches('-').trim_end_matches('=');
            push(&mut out, &format!("complete -c cohortd -l {name} -d '{}'\n", quoted(text)));
            out
        }),
        "zsh" => {
            let mut out = String::from("#compdef cohortd\n_arguments \\\n");
            for (name, text) in &words {
                let text = quoted(text).replace('[', "\\[").replace(']', "\\]").replace(':', "\\:");
                push(&mut out, &format!("  '{name}[{text}]' \\\n"));
            }
            out + "  '*:file:_files'\n"
        }
        _ => return None,
    })
}

/// Returns all options as typed (`--name=` if they have a value), with the first sentence of their
/// description.
fn words() -> impl Iterator<Item = (String, String)> {
    let all = GROUPS.iter().flat_map(|group| group.options);
    let fixed = all.filter_map(|(option, text)| {
        let name = option.split([',', ' ']).next()?;
        let end =
            name.find(['=', '[']).map_or(name.len(), |at| at + usize::from(name[at..].starts_with('=')));
        let name = &name[..end];
        let bare = name[2..].trim_end_matches('=').replace('-', "_");
        let is_setting = options().any(|setting| setting.name == bare);
        (!is_setting).then(|| (name.to_owned(), (*text).to_owned()))
    });
    let settings = options().map(|setting| {
        let (option, text) = (usage(setting), description(setting));
        let name = option.find('=').map_or(option.as_str(), |at| &option[..=at]).to_owned();
        let sentence = text.split_once(". ").map_or(text.as_str(), |(first, _)| first);
        (name, sentence.trim_end_matches('.').to_owned())
    });
    fixed.chain(settings)
}

/// Returns a setting as an option, with a placeholder for its value.
fn usage(setting: &Setting) -> String {
    let name = setting.name.replace('_', "-");
    match setting.kind {
        Kind::Bool { .. } => format!("--{name}"),
        Kind::Int { .. } | Kind::Double { .. } => format!("--{name}=N"),
        Kind::Path { .. } => format!("--{name}=PATH"),
        Kind::Enum { .. } | Kind::Set { .. } | Kind::Text { .. } => format!("--{name}=TEXT"),
    }
}

fn section(out: &mut String, title: &str) {
    push(out, &format!(".SH {}\n", roff(&title.to_uppercase())));
}

fn entry(out: &mut String, head: &str, text: &str) {
    push(out, &format!(".TP\n\\fB{}\\fR\n{}\n", roff(head), roff(text)));
}

/// Escapes characters that are special to `man`.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}

/// Makes a text safe within the single quotes of a shell: removes quotes and backslashes.
fn quoted(text: &str) -> String {
    text.replace(['\'', '\\'], "")
}

fn push(out: &mut String, text: &str) {
    out.write_str(text).expect("a String takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_in_the_manual_page_and_in_the_completions() {
        let build = Build { version: "0.0.0", revision: None, features: &[] };
        let page = man_page(&build);
        let bash = completions("bash").expect("known");
        for setting in options() {
            let name = setting.name.replace('_', "-");
            assert!(bash.contains(&format!("--{name}")), "{name}");
            let in_page = page.contains(&format!(".TP\n\\fB{}", roff(&format!("--{name}"))));
            assert_eq!(in_page, setting.has_effect(), "{name}");
        }
        for word in ["--defaults-file=", "--initialize", "--log-bin", "--port="] {
            assert_eq!(bash.split([' ', '\'']).filter(|given| *given == word).count(), 1, "{word}");
        }
        assert!(page.lines().all(|line| !line.starts_with('\'')), "no request by accident");
        for shell in ["fish", "zsh"] {
            let text = completions(shell).expect("known");
            assert!(text.contains("initialize") && text.contains("server-id"), "{text}");
        }
        assert_eq!(completions("csh"), None);
    }
}
