//! The binlog in the commit path: the stream that assigns positions, the files that store it, and the
//! operations on both that belong to no transaction.
//!
//! Normally a background thread writes the files after the log. In the separate layout the files decide: the
//! leader writes and syncs them itself (`separate.rs`), and bytes that belong to no transaction are written
//! in the same way.

use std::sync::Arc;

use cohort_base::BinlogPos;
use cohort_binlog::{
    Batch, BinlogFileWriter, BinlogFileWriterOptions, BinlogFiles, Chunk, Content, GtidState, SpillDir,
    Stream, StreamOptions, StreamOut,
};
use cohort_log::LogReservation;
use cohort_vfs::World;
use parking_lot::Mutex;

use crate::error::FlushError;
use crate::logs::Logs;
use crate::options::BinlogSettings;
use crate::record;
use crate::recovery::Recovered;
use crate::recovery_error::RecoveryError;
use crate::rotation_reserve::RotationReserve;

/// Reason for refusing writes while the files wait for disk space.
pub const NO_SPACE_FOR_BINLOG: &str = "no space for the binary log's files";

/// The binlog of a server; absent with `skip-log-bin`.
pub struct Binlog {
    pub stream: Mutex<Stream>,
    pub files: Arc<BinlogFileWriter>,
    pub rotation_reserve: RotationReserve,
    /// End of the stream after the last durable group.
    pub end: Mutex<BinlogEnd>,
    /// The files decide: bytes are synced in them before they are submitted.
    pub is_deciding: bool,
}

/// Position and GTIDs for SHOW MASTER STATUS.
#[derive(Clone, Debug, Default)]
pub struct BinlogEnd {
    pub position: BinlogPos,
    pub gtids: GtidState,
}

impl Binlog {
    /// Starts a new binlog file, as every start of a MariaDB server does. Its header goes through the log
    /// like all other binlog bytes.
    pub fn start(
        world: &World,
        settings: &BinlogSettings,
        has_threads: bool,
        logs: &dyn Logs,
        files: BinlogFiles,
        spill: &Arc<SpillDir>,
        recovered: &Recovered,
    ) -> Result<Binlog, RecoveryError> {
        let stream_options = StreamOptions {
            name: settings.name.clone(),
            file_bytes_max: settings.file_bytes_max,
            server_id: settings.server_id,
            server_version: settings.server_version.clone(),
            checksum: settings.checksum,
        };
        let now_s = (world.clock.wall_us() / 1_000_000) as u32;
        let needed_bytes = Stream::file_change_bytes_max(&settings.name, &recovered.gtids);
        let mut out = StreamOut::default();
        let (first, gtids) = (recovered.next_binlog_file, recovered.gtids.clone());
        let is_deciding = logs.is_decided_by_binlog();
        let stream = match is_deciding {
            false => Stream::open_new(stream_options, first, gtids, now_s, &mut out),
            true => {
                let synced = recovered.binlog_synced.file;
                let needed_from = if synced == 0 { first } else { synced };
                Stream::open_deciding(stream_options, first, gtids, needed_from, now_s, &mut out)
            }
        };
        let is_lazy = has_threads && !is_deciding;
        let file_writer = match is_lazy {
            true => BinlogFileWriter::start(files, spill.clone(), BinlogFileWriterOptions::default()),
            false => BinlogFileWriter::stepped(files, spill.clone(), BinlogFileWriterOptions::default()),
        };
        let binlog = Binlog {
            stream: Mutex::new(stream),
            files: Arc::new(file_writer),
            rotation_reserve: RotationReserve::new(needed_bytes),
            end: Mutex::new(BinlogEnd { gtids: recovered.gtids.clone(), ..BinlogEnd::default() }),
            is_deciding,
        };
        let mut batch = Batch::default();
        add_to_batch(&mut batch, &out);
        if logs.has_binlog_bytes() {
            record::append_binlog_record(logs.main(), logs.main().reserve(needed_bytes)?, &out);
            logs.main().flush()?;
        }
        if is_deciding {
            binlog.files.write_synced(&batch)?;
        }
        let end = binlog.stream.lock().position();
        binlog.submit(end, batch, |_| ());
        Ok(binlog)
    }

    /// Makes bytes that belong to no transaction durable; the order stage is held. `reservation` is the
    /// reservation in the coordinator's log if that gets them.
    pub fn flush(
        &self,
        logs: &dyn Logs,
        reservation: Option<LogReservation>,
        out: &StreamOut,
    ) -> Result<Batch, FlushError> {
        let mut batch = Batch::default();
        add_to_batch(&mut batch, out);
        logs.flush_binlog(&self.files, reservation, out, &batch)?;
        Ok(batch)
    }

    /// Submits durable bytes to the files, which make them readable. `position` is the end of the bytes;
    /// `note` updates the GTIDs to that position.
    pub fn submit(&self, position: BinlogPos, batch: Batch, note: impl FnOnce(&mut GtidState)) {
        {
            let mut end = self.end.lock();
            end.position = position;
            note(&mut end.gtids);
        }
        self.hand_over(batch);
    }

    /// Submits durable bytes whose end is already recorded.
    pub fn hand_over(&self, batch: Batch) {
        match batch.chunks.is_empty() {
            true => {}
            false if self.is_deciding => self.files.show(batch),
            false => self.files.submit(batch),
        }
    }
}

/// Appends a piece of the stream to the batch for the binlog writer; adjacent inline chunks become one.
pub fn add_to_batch(batch: &mut Batch, out: &StreamOut) {
    batch.bytes.extend_from_slice(&out.bytes);
    for chunk in &out.chunks {
        match batch.chunks.last_mut() {
            Some(Chunk { pos, len, content: Content::Inline })
                if chunk.content == Content::Inline
                    && pos.file == chunk.pos.file
                    && pos.offset + *len == chunk.pos.offset =>
            {
                *len += chunk.len;
            }
            _ => batch.chunks.push(chunk.clone()),
        }
    }
}
