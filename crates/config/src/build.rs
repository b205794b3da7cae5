//! The build of a server: its own version, in addition to the MariaDB version that clients see.

/// A build.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// Cohort's own version, `0.1.0`.
    pub version: &'static str,
    /// Commit and date of the sources, if known at build time.
    pub revision: Option<&'static str>,
    /// Optional features compiled in.
    pub features: &'static [&'static str],
}

impl Build {
    /// Returns version, revision and features in one line.
    pub fn text(&self) -> String {
        let mut text = self.version.to_owned();
        for part in self.revision.iter().chain(self.features) {
            text.push_str(", ");
            text.push_str(part);
        }
        text
    }

    /// Returns the output of `--version`. Tools parse the word after `Ver`.
    pub(crate) fn banner(&self) -> String {
        format!(
            "cohortd  Ver {} for Linux on {} (Cohort {})\n",
            crate::VERSION,
            std::env::consts::ARCH,
            self.text()
        )
    }
}
