//! A log on standard error, as a server's error log is.

/// Prints what the engine logs, as a server's error log does.
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

/// Makes it the log of the process.
pub fn install() {
    log::set_logger(&StandardError).expect("the only one");
    log::set_max_level(log::LevelFilter::Info);
}
