//! A logger that writes to standard error.

/// Prints the engine's log messages, like a server's error log.
struct StandardError;

impl log::Log for StandardError {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        eprintln!("[{}] {}", record.level(), record.args());
    }

    fn flush(&self) {}
}

/// Installs it as the logger of the process.
pub fn install() {
    log::set_logger(&StandardError).expect("the only one");
    log::set_max_level(log::LevelFilter::Info);
}
