//! Buffer pool dump and load for a warm restart: when the page list is written and read, and its status for
//! clients.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_config::{Globals, StatusSource, VarId, VarValue};
use cohort_engine::{Engine, PoolDumpRequest, PoolDumpState};
use cohort_vfs::{SharedClock, SharedFs};

use crate::error_log::local_time;

/// The engines whose pages are listed, and the settings.
pub struct PoolDump {
    engines: Vec<Arc<dyn Engine>>,
    globals: Arc<Globals>,
    fs: SharedFs,
    clock: SharedClock,
    datadir: PathBuf,
}

impl PoolDump {
    /// Creates it. No list is read yet.
    pub fn new(
        engines: Vec<Arc<dyn Engine>>,
        globals: &Arc<Globals>,
        (fs, clock): (SharedFs, SharedClock),
        datadir: &Path,
    ) -> PoolDump {
        PoolDump { engines, globals: Arc::clone(globals), fs, clock, datadir: datadir.to_owned() }
    }

    fn file(&self) -> PathBuf {
        let name = self.globals.text(VarId::InnodbBufferPoolFilename);
        self.datadir.join(name.as_deref().unwrap_or("ib_buffer_pool"))
    }

    fn request(&self, request: &PoolDumpRequest) {
        self.engines.iter().for_each(|engine| engine.dump_or_load_pool(request.clone(), &self.clock));
    }

    fn dump(&self) {
        let percent = self.globals.uint(VarId::InnodbBufferPoolDumpPct).min(100) as u8;
        self.request(&PoolDumpRequest::Dump { file: self.file(), percent });
    }

    /// Starts loading the listed pages in the background after the start of the server. A first start has no
    /// list.
    pub fn started(&self) {
        if self.globals.flag(VarId::InnodbBufferPoolLoadAtStartup) && self.fs.exists(&self.file()) {
            self.request(&PoolDumpRequest::Load { file: self.file() });
        }
    }

    /// Aborts a load and writes the list when the server stops and no statements are running.
    pub fn stopping(&self) {
        self.request(&PoolDumpRequest::AbortLoad);
        if self.globals.flag(VarId::InnodbBufferPoolDumpAtShutdown) {
            self.dump();
        }
    }

    /// Executes a variable that works as a command (such as innodb_buffer_pool_dump_now) and resets it to
    /// OFF.
    pub fn ordered(&self, id: VarId) {
        if !self.globals.flag(id) {
            return;
        }
        self.globals.put(id, &VarValue::Bool(false));
        match id {
            VarId::InnodbBufferPoolDumpNow => self.dump(),
            VarId::InnodbBufferPoolLoadNow => self.request(&PoolDumpRequest::Load { file: self.file() }),
            _ => self.request(&PoolDumpRequest::AbortLoad),
        }
    }
}

/// Status variables of dump and load.
pub struct PoolDumpStatus(pub Arc<PoolDump>);

impl StatusSource for PoolDumpStatus {
    fn status(&self, out: &mut Vec<(String, String)>) {
        let Some(warmth) = self.0.engines.iter().find_map(|engine| engine.warmth()) else { return };
        out.push(("Innodb_buffer_pool_dump_status".to_owned(), status_text(&warmth.dump, "dump")));
        out.push(("Innodb_buffer_pool_load_status".to_owned(), status_text(&warmth.load, "load")));
    }
}

/// Returns a status text in MariaDB's form; empty if the operation was never started.
fn status_text(state: &PoolDumpState, noun: &str) -> String {
    let at = |at_us: u64| {
        let parts = local_time(at_us);
        format!(
            "{:02}{:02}{:02} {:2}:{:02}:{:02}",
            parts.tm_year % 100,
            parts.tm_mon + 1,
            parts.tm_mday,
            parts.tm_hour,
            parts.tm_min,
            parts.tm_sec
        )
    };
    match state {
        PoolDumpState::NotStarted => String::new(),
        PoolDumpState::Running { done, of } => format!("Loaded {done}/{of} pages"),
        PoolDumpState::Completed { at_us, .. } => {
            format!("Buffer pool(s) {noun} completed at {}", at(*at_us))
        }
        PoolDumpState::Aborted { at_us, .. } => {
            format!("Buffer pool(s) {noun} aborted on request at {}", at(*at_us))
        }
        PoolDumpState::Failed(why) => format!("Buffer pool(s) {noun} failed: {why}"),
    }
}
