//! The shared layout: one log for the binlog and all engines. A commit takes one flush.
//!
//! A COMMIT record holds the whole transaction: its redo, and its binlog bytes in their final form. It
//! decides (I2), and the files of the binlog are written after it.

use cohort_base::ParticipantId;
use cohort_binlog::{Batch, BinlogFileWriter, Stream, StreamOut};
use cohort_log::{Log, LogError, LogReservation};

use crate::error::{CommitError, FlushError};
use crate::logs::{Decision, LogLayout, LogNeeds, Logs, Marks, Member, Reserve, main_mark};
use crate::record;
use crate::request::Trx;
use crate::reservations::TrxReservations;
use crate::rotation_reserve::RotationReserve;

/// The one log.
pub struct SharedLog(pub Log);

impl Logs for SharedLog {
    fn layout(&self) -> LogLayout {
        LogLayout::Shared
    }

    fn is_decided_by_binlog(&self) -> bool {
        false
    }

    fn main(&self) -> &Log {
        &self.0
    }

    fn log_of(&self, _: ParticipantId) -> &Log {
        &self.0
    }

    fn each(&self) -> Vec<&Log> {
        vec![&self.0]
    }

    fn reserve(&self, of: &LogNeeds<'_>, reserve: Reserve<'_>) -> Result<TrxReservations, CommitError> {
        let bytes = of.commit_bytes_max(self.0.is_archived());
        Ok(TrxReservations::Shared(Some(reserve(&self.0, bytes)?)))
    }

    fn append(&self, member: &Member<'_>, trx: &mut Trx, buffer: &mut Vec<u8>) -> Option<Decision> {
        append_commit(&self.0, reservation_of(trx), member, trx, buffer);
        None
    }

    fn rotate(
        &self,
        stream: &mut Stream,
        reserve: &RotationReserve,
        now_s: &dyn Fn() -> u32,
    ) -> Option<StreamOut> {
        reserve.rotate(&self.0, stream, now_s)
    }

    fn sync(&self) -> Result<(), LogError> {
        let appended = self.0.appended();
        let durable = self.0.flush()?;
        assert!(durable >= appended, "a flush makes all that was appended before it durable (I4)");
        Ok(())
    }

    fn flush_binlog(
        &self,
        _: &BinlogFileWriter,
        reservation: Option<LogReservation>,
        out: &StreamOut,
        _: &Batch,
    ) -> Result<(), FlushError> {
        record::append_binlog_record(&self.0, reservation.expect("reserved in the one log"), out);
        self.0.flush().map(drop).map_err(FlushError::Log)
    }

    fn fill_rotation_reserve(&self, reserve: &RotationReserve) {
        reserve.fill(&self.0);
    }

    fn marks(&self) -> Marks {
        Marks { main: main_mark(&self.0), engines: Vec::new() }
    }

    fn group_syncs_of(&self, _: ParticipantId) -> u64 {
        self.0.stats().syncs
    }
}

/// Appends a whole transaction, with the time before it if it has one.
pub fn append_commit(
    log: &Log,
    mut reservation: LogReservation,
    member: &Member<'_>,
    trx: &Trx,
    buffer: &mut Vec<u8>,
) {
    if let Some(time_us) = member.time_us {
        let of_time = reservation.split(record::TIME_BYTES);
        log.append(of_time, record::TIME, &[&time_us.to_le_bytes()]);
    }
    buffer.clear();
    record::encode_commit(member.seq, member.released, trx, &member.out.chunks, buffer);
    log.append(reservation, record::COMMIT, &[buffer, &member.out.bytes]);
}

/// Takes the reservation for the transaction's record.
fn reservation_of(trx: &mut Trx) -> LogReservation {
    match &mut trx.reserved {
        TrxReservations::Shared(reservation) => reservation.take().expect("reserved at prepare (I6)"),
        TrxReservations::Separate { .. } => unreachable!("reserved for the one log"),
    }
}
