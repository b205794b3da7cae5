//! Conversion of a data directory from one layout of the logs to the other, while no server runs.
//!
//! A server that was stopped cleanly has everything in its engines and binlog files, so the logs hold nothing
//! that is still needed. The conversion therefore only changes the control file of the coordinator's log, in
//! one update, which decides. LSNs of one layout mean nothing in the other, but engines store the LSN up to
//! which they are durable: the new logs begin after it.
//!
//! # On failure
//! Before the update the directory has its old layout, after it the new one. Logs of engines that the
//! coordinator's log does not name are left over from an interrupted conversion; the next conversion removes
//! them.

use std::path::Path;

use cohort_base::{Lsn, ParticipantId, Xid};
use cohort_log::{LogOptions, NewLog, Opened, Recovery};
use cohort_vfs::World;

use crate::logs::{LogLayout, engine_dir, main_dir};
use crate::open_logs::layout_of;
use crate::record::{self, Checkpoint, EngineLogs, Pair};
use crate::recovery_error::RecoveryError;

/// Result of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Converted {
    Done,
    /// The directory had the layout already.
    Nothing,
}

/// Returns the layout of a data directory, or `None` if nothing was committed in it.
pub fn layout_on_disk(
    world: &World,
    datadir: &Path,
    options: &LogOptions,
) -> Result<Option<LogLayout>, RecoveryError> {
    let dir = main_dir(datadir);
    if !Recovery::is_there(world, &dir) {
        return Ok(None);
    }
    let mut main = Recovery::open(world, &dir, options.clone())?;
    Ok(layout_of(&mut main, &dir)?.0)
}

/// Creates the logs of a new data directory with this layout.
pub fn make_logs(
    world: &World,
    datadir: &Path,
    options: &LogOptions,
    layout: LogLayout,
) -> Result<(), RecoveryError> {
    if layout == LogLayout::Separate {
        let separate = Some(EngineLogs { pair: Pair(world.rng.next_u64()), from: Vec::new() });
        let checkpoint = Checkpoint { next_xid: Xid(1), separate, ..Checkpoint::default() };
        let new = NewLog { from: Lsn(0), payload: checkpoint.encode() };
        Recovery::open_or_make(world, &main_dir(datadir), options.clone(), new)?;
    }
    Ok(())
}

/// Converts a data directory, whose server was stopped cleanly, to another layout. `engines` has each engine
/// with the LSN up to which it is durable.
pub fn convert(
    world: &World,
    datadir: &Path,
    options: &LogOptions,
    engines: &[(ParticipantId, Lsn)],
    to: LogLayout,
) -> Result<Converted, RecoveryError> {
    let dir = main_dir(datadir);
    let mut main = Recovery::open(world, &dir, options.clone())?;
    let (layout, checkpoint) = layout_of(&mut main, &dir)?;
    if layout.is_none_or(|layout| layout == to) {
        return Ok(Converted::Nothing);
    }
    let is_idle = main.opened() == Opened::Clean && main.next()?.is_none();
    main.rewind();
    if !is_idle {
        return Err(RecoveryError::Setting(
            "the logs hold transactions: start the server with the layout that it has, wait until replicas have everything, and stop it",
        ));
    }
    let is_here = |id: &ParticipantId| engines.iter().any(|(engine, _)| engine == id);
    let named = checkpoint.separate.iter().flat_map(|named| &named.from);
    if named.into_iter().any(|(id, _)| !is_here(id)) {
        return Err(RecoveryError::Setting(
            "the data directory has the log of an engine that this build of the server does not have",
        ));
    }
    let directory = Directory { world, datadir, options, engines };
    match to {
        LogLayout::Separate => directory.to_separate(main, checkpoint)?,
        LogLayout::Shared => directory.to_shared(main, checkpoint)?,
    }
    Ok(Converted::Done)
}

/// The data directory that is converted.
struct Directory<'a> {
    world: &'a World,
    datadir: &'a Path,
    options: &'a LogOptions,
    engines: &'a [(ParticipantId, Lsn)],
}

impl Directory<'_> {
    fn to_separate(&self, main: Recovery, checkpoint: Checkpoint) -> Result<(), RecoveryError> {
        let pair = Pair(self.world.rng.next_u64());
        let mut from = Vec::new();
        self.remove_engine_logs()?;
        for (engine, durable) in self.engines {
            let dir = engine_dir(self.datadir, *engine);
            let new = NewLog { from: *durable, payload: record::encode_engine_log(pair, *engine) };
            let log = Recovery::open_or_make(self.world, &dir, self.options.clone(), new)?;
            from.push((*engine, log.checkpoint().0));
        }
        let separate = Some(EngineLogs { pair, from });
        let end = main.checkpoint().0;
        main.begin_at(end, Checkpoint { separate, ..checkpoint }.encode())?;
        Ok(())
    }

    fn to_shared(&self, main: Recovery, checkpoint: Checkpoint) -> Result<(), RecoveryError> {
        let dirs = || self.engines.iter().map(|(engine, _)| engine_dir(self.datadir, *engine));
        let mut end = main.checkpoint().0;
        for (dir, (_, durable)) in dirs().zip(self.engines) {
            let mut log = Recovery::open(self.world, &dir, self.options.clone())?;
            while log.next()?.is_some() {}
            end = end.max(log.read_to()).max(*durable);
        }
        main.begin_at(end, Checkpoint { separate: None, ..checkpoint }.encode())?;
        self.remove_engine_logs()
    }

    /// Removes the engines' logs, including those of engines that this server does not have: an interrupted
    /// conversion may have left them, and the engine may be added again later.
    fn remove_engine_logs(&self) -> Result<(), RecoveryError> {
        let dirs = (0..=u8::MAX).map(|n| engine_dir(self.datadir, ParticipantId(n)));
        dirs.into_iter().try_for_each(|dir| remove(self.world, &dir))
    }
}

/// Removes a log that no control file names.
fn remove(world: &World, dir: &Path) -> Result<(), RecoveryError> {
    let failed = |e| RecoveryError::Io(dir.to_path_buf(), e);
    if !world.fs.exists(dir) {
        return Ok(());
    }
    for name in world.fs.list(dir).map_err(failed)? {
        world.fs.remove(&dir.join(name)).map_err(failed)?;
    }
    world.fs.sync_dir(dir).map_err(failed)
}
