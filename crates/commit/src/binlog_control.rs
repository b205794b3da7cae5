//! Operations on the binlog outside of transactions: rotation, checksums, GTID domains, access to the files.

use std::sync::Arc;

use cohort_base::{BinlogPos, DomainId};
use cohort_binlog::event::Checksum;
use cohort_binlog::{
    Batch, BinlogError, BinlogFileWriter, BinlogFiles, DomainDeletion, GtidState, Stream, StreamOut,
    check_deletion,
};
use cohort_log::LogReservation;

use crate::binlog::{Binlog, NO_SPACE_FOR_BINLOG};
use crate::commit_env::Stopped;
use crate::coordinator::Coordinator;
use crate::error::{CommitError, PurgeError};
use crate::fault::Severity;

impl Coordinator {
    /// Returns the binlog's position and newest GTIDs after the last durable group. Returns `None` with the
    /// binlog off.
    pub fn binlog_status(&self) -> Option<(BinlogPos, GtidState)> {
        let end = self.env().binlog.as_ref()?.end.lock().clone();
        Some((end.position, end.gtids))
    }

    /// Returns the writer of the binlog's files, which also has the newest bytes: replicas are served from
    /// it. Returns `None` with the binlog off.
    pub fn binlog_files(&self) -> Option<Arc<BinlogFileWriter>> {
        Some(Arc::clone(&self.env().binlog.as_ref()?.files))
    }

    /// Runs `work` on the binlog's files, after everything durable so far has been written to them.
    /// Returns `None` with the binlog off.
    pub fn with_binlog_files<R>(
        &self,
        work: impl FnOnce(&mut BinlogFiles) -> R,
    ) -> Option<Result<R, BinlogError>> {
        let binlog = self.env().binlog.as_ref()?;
        Some(self.catch_up(binlog).map(|()| binlog.files.with_files(work)))
    }

    /// Runs `work` like [`Coordinator::with_binlog_files`], but without the bytes for which there is no
    /// space.
    pub fn with_files_that_fit<R>(
        &self,
        work: impl FnOnce(&mut BinlogFiles) -> R,
    ) -> Option<Result<R, BinlogError>> {
        let binlog = self.env().binlog.as_ref()?;
        let caught_up = match self.catch_up(binlog) {
            Err(BinlogError::NoSpace { .. }) => Ok(()),
            other => other,
        };
        Some(caught_up.map(|()| binlog.files.with_files(work)))
    }

    /// Writes everything durable so far to the files, as far as there is space, before they are copied. Does
    /// nothing with the binlog off.
    pub fn complete_binlog_files(&self) {
        if let Some(binlog) = &self.env().binlog {
            // The error is visible in the writer's status.
            let _ = self.catch_up(binlog);
        }
    }

    fn catch_up(&self, binlog: &Binlog) -> Result<(), BinlogError> {
        // Where the files decide, they hold everything durable.
        if binlog.is_deciding {
            return Ok(());
        }
        let (position, restarts) = {
            let end = binlog.end.lock();
            (end.position, binlog.files.restarts())
        };
        let caught_up = binlog.files.catch_up(position, restarts);
        if let Err(error) = &caught_up {
            self.stop_if_severe(Severity::of_binlog(error), error);
        }
        caught_up
    }

    /// Runs `work` on the binlog's files in their present state. Further bytes may be about to be written, or
    /// wait for space.
    pub fn with_written_files<R>(&self, work: impl FnOnce(&mut BinlogFiles) -> R) -> Option<R> {
        Some(self.env().binlog.as_ref()?.files.with_files(work))
    }

    /// Returns the name of the binlog file with this number. Returns `None` with the binlog off.
    pub fn binlog_file_name(&self, number: u32) -> Option<String> {
        Some(self.options.binlog.as_ref()?.name.file(number))
    }

    /// Ends the current file immediately, for FLUSH BINARY LOGS.
    pub fn rotate_binlog(&self) -> Result<(), CommitError> {
        self.change_stream(|stream, out, now_s| stream.rotate(out, now_s))
    }

    /// Forgets the GTID domains that occur in no file, and ends the current file, for FLUSH BINARY LOGS
    /// DELETE_DOMAIN_ID. Changes nothing if none of `wanted` is such a domain, or if one of them is still
    /// needed. An empty `wanted` only ends the file. Returns `None` with the binlog off.
    pub fn delete_gtid_domains(&self, wanted: &[DomainId]) -> Result<Option<DomainDeletion>, PurgeError> {
        let first = |files: &mut BinlogFiles| {
            files.numbers().first().map_or(Ok(GtidState::default()), |&first| files.state_at_start(first))
        };
        let Some(oldest) = self.with_binlog_files(first) else { return Ok(None) };
        let oldest = oldest??;
        let mut deletion = DomainDeletion::default();
        self.change_stream(|stream, out, now_s| {
            deletion = check_deletion(stream.gtid_state(), &oldest, wanted);
            if wanted.is_empty() || !deletion.domains.is_empty() {
                stream.forget_domains(&deletion.domains);
                let mut gtids = self.env().gtids.lock();
                deletion.domains.iter().for_each(|&domain| gtids.remove(domain));
                stream.rotate(out, now_s);
            }
        })
        .map_err(PurgeError::Commit)?;
        Ok(Some(deletion))
    }

    /// Sets `max_binlog_size`, from the next group on.
    pub fn set_binlog_file_bytes_max(&self, bytes: u64) {
        if let Some(binlog) = &self.env().binlog {
            binlog.stream.lock().set_file_bytes_max(bytes);
        }
    }

    /// Sets `binlog_checksum`: ends the current file; the next one has these checksums.
    pub fn set_binlog_checksum(&self, checksum: Checksum) -> Result<(), CommitError> {
        self.change_stream(|stream, out, now_s| stream.set_checksum(checksum, out, now_s))
    }

    /// Returns the number of readers of binlog files: the dump threads of replicas.
    pub fn binlog_readers(&self) -> usize {
        self.env().binlog.as_ref().map_or(0, |binlog| binlog.files.pins().count())
    }

    /// Changes the stream between two groups. The appended bytes (at most a file change) belong to no
    /// transaction and are made durable immediately.
    pub(crate) fn change_stream(
        &self,
        mut change: impl FnMut(&mut Stream, &mut StreamOut, u32),
    ) -> Result<(), CommitError> {
        let Some(binlog) = &self.env().binlog else { return Ok(()) };
        // Repeated only if the reservation is too small, because domains were added meanwhile.
        while !self.try_change_stream(binlog, &mut change)? {}
        Ok(())
    }

    fn try_change_stream(
        &self,
        binlog: &Binlog,
        change: &mut impl FnMut(&mut Stream, &mut StreamOut, u32),
    ) -> Result<bool, CommitError> {
        let env = self.env();
        let reservation = self.reserve_for_stream(binlog)?;
        // The leader that decides waits for disk space, and a file change would wait for that leader.
        if env.logs.is_decided_by_binlog() && binlog.files.is_without_space() {
            return Err(CommitError::DiskFull(NO_SPACE_FOR_BINLOG.to_owned()));
        }
        let durable = self.pipeline.hold(|_| {
            let mut stream = binlog.stream.lock();
            let needed_bytes = stream.rotation_bytes_max();
            binlog.rotation_reserve.note_need(needed_bytes);
            if reservation.as_ref().is_some_and(|reservation| !reservation.fits(needed_bytes)) {
                return Ok(false);
            }
            let mut out = StreamOut::default();
            change(&mut stream, &mut out, env.now_s());
            if out.chunks.is_empty() {
                return Ok(true);
            }
            binlog.rotation_reserve.note_need(stream.rotation_bytes_max());
            // The order stage is still held, so that no later group overtakes these bytes on their way to the
            // files.
            let batch = self.flush_stream(binlog, reservation, &out)?;
            binlog.submit(stream.position(), batch, |gtids| gtids.clone_from(stream.gtid_state()));
            Ok::<bool, Stopped>(true)
        });
        Ok(durable.and_then(|done| done)?)
    }
}

impl Coordinator {
    /// Reserves space in the coordinator's log for a file change. Returns `None` if that does not get the
    /// bytes.
    pub(crate) fn reserve_for_stream(&self, binlog: &Binlog) -> Result<Option<LogReservation>, CommitError> {
        self.reserve_for_stream_of(binlog, 0)
    }

    /// Reserves like [`Coordinator::reserve_for_stream`], but at least this many bytes.
    pub(crate) fn reserve_for_stream_of(
        &self,
        binlog: &Binlog,
        bytes: u64,
    ) -> Result<Option<LogReservation>, CommitError> {
        match self.env().logs.has_binlog_bytes() {
            true => Ok(Some(self.reserve(binlog.rotation_reserve.wanted_bytes().max(bytes))?)),
            false => Ok(None),
        }
    }

    /// Makes bytes durable by [`Binlog::flush`]. A failure ends the server as that of a group does.
    pub(crate) fn flush_stream(
        &self,
        binlog: &Binlog,
        reservation: Option<LogReservation>,
        out: &StreamOut,
    ) -> Result<Batch, Stopped> {
        binlog.flush(&*self.env().logs, reservation, out).map_err(|error| {
            self.fail(&error);
            Stopped
        })
    }
}
