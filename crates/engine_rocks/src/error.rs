//! Conversion of errors of RocksDB.

use cohort_engine::EngineError;

/// Converts an error of RocksDB, whose text names the file.
pub fn io_error(error: rocksdb::Error) -> EngineError {
    match error.kind() {
        rocksdb::ErrorKind::Corruption => EngineError::Corrupt(error.into_string()),
        _ => EngineError::Io(io_error_of_text(error.into_string())),
    }
}

/// Returns the text as an I/O error. RocksDB reports a full disk only in the text.
pub fn io_error_of_text(text: String) -> std::io::Error {
    let is_full = text.contains("No space left on device") || text.contains("Disk quota exceeded");
    let kind = if is_full { std::io::ErrorKind::StorageFull } else { std::io::ErrorKind::Other };
    std::io::Error::new(kind, text)
}
