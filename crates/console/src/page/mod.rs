//! The files of the page. They load nothing from elsewhere.

/// A file that any client may read.
pub(crate) struct File {
    pub path: &'static str,
    pub content_type: &'static str,
    pub bytes: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

macro_rules! file {
    ($path:literal, $type:ident, $name:literal) => {
        File { path: $path, content_type: $type, bytes: include_bytes!($name) }
    };
}

pub(crate) const FILES: &[File] = &[
    file!("/", HTML, "index.html"),
    file!("/style.css", STYLE, "style.css"),
    file!("/icon.svg", IMAGE, "icon.svg"),
    file!("/main.js", SCRIPT, "main.js"),
    file!("/dom.js", SCRIPT, "dom.js"),
    file!("/format.js", SCRIPT, "format.js"),
    file!("/server.js", SCRIPT, "server.js"),
    file!("/chart.js", SCRIPT, "chart.js"),
    file!("/table.js", SCRIPT, "table.js"),
    file!("/overview.js", SCRIPT, "overview.js"),
    file!("/statements.js", SCRIPT, "statements.js"),
    file!("/sessions.js", SCRIPT, "sessions.js"),
    file!("/locks.js", SCRIPT, "locks.js"),
    file!("/commit.js", SCRIPT, "commit.js"),
    file!("/replication.js", SCRIPT, "replication.js"),
    file!("/storage.js", SCRIPT, "storage.js"),
    file!("/settings.js", SCRIPT, "settings.js"),
    file!("/errors.js", SCRIPT, "errors.js"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_loads_nothing_from_elsewhere() {
        assert!(FILES.iter().map(|file| file.bytes.len()).sum::<usize>() < 200 << 10);
        for file in FILES {
            let text =
                std::str::from_utf8(file.bytes).expect("text").replace("http://www.w3.org/2000/svg", "");
            for bad in [
                "http://",
                "https://",
                "//cdn",
                "@import",
                "url(",
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                " style=\"",
                "onclick=",
            ] {
                assert!(!text.contains(bad), "{}: {bad}", file.path);
            }
        }
    }
}
