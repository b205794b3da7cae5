//! Opening the logs of a data directory: determines their layout, and checks that they belong together.
//!
//! The coordinator's log, `log/`, says which layout the directory has; a directory without a commit takes the
//! layout of the settings. The engines' logs are created before the first checkpoint, which names them.
//!
//! # On failure
//! A refusal names the file and the remedy. A start that was interrupted while it created logs is repeated:
//! empty logs are reused.

use std::path::Path;
use std::sync::Arc;

use cohort_base::{Lsn, ParticipantId};
use cohort_engine::Engine;
use cohort_log::{Log, LogError, LogOptions, NewLog, Recovery};
use cohort_vfs::World;

use crate::logs::{LogLayout, Logs, engine_dir, main_dir};
use crate::options::CoordinatorOptions;
use crate::record::{self, Checkpoint, Pair};
use crate::recovery_error::{RecoveryError, Row, refused};
use crate::separate::SeparateLogs;
use crate::separate_recovery::OwnRecovery;
use crate::shared::SharedLog;

/// The logs before they are read.
pub enum FoundLogs {
    Shared(Box<Recovery>),
    Separate(FoundSeparate),
}

/// The logs of the separate layout.
pub struct FoundSeparate {
    pub pair: Pair,
    /// The coordinator's log first.
    pub logs: Vec<OwnRecovery>,
    pub checkpoint: Checkpoint,
}

/// Opens the logs of a data directory, or creates them.
pub fn open_logs(
    world: &World,
    options: &CoordinatorOptions,
    engines: &[Arc<dyn Engine>],
) -> Result<FoundLogs, RecoveryError> {
    let dir = main_dir(&options.datadir);
    if !Recovery::is_there(world, &dir) {
        let left = engines.iter().map(|engine| engine_dir(&options.datadir, engine.id()));
        if let Some(left) = left.into_iter().find(|dir| Recovery::is_there(world, dir)) {
            let what = format!("{} is missing, but there is {}", dir.display(), left.display());
            return Err(refused(Row::LogLost, what));
        }
    }
    let mut main = Recovery::open(world, &dir, options.log.clone())?;
    let (found, checkpoint) = layout_of(&mut main, &dir)?;
    let layout = found.unwrap_or(options.layout);
    if layout != options.layout {
        let what = format!("{} was created with log_layout={layout}, not {}", dir.display(), options.layout);
        return Err(refused(Row::OtherLayout, what));
    }
    match layout {
        LogLayout::Shared => Ok(FoundLogs::Shared(Box::new(main))),
        LogLayout::Separate => {
            let found = open_separate(world, options, engines, main, checkpoint)?;
            Ok(FoundLogs::Separate(found))
        }
    }
}

/// Returns the layout that a coordinator's log was created with (`None` if nothing was committed), and its
/// checkpoint.
pub fn layout_of(main: &mut Recovery, dir: &Path) -> Result<(Option<LogLayout>, Checkpoint), RecoveryError> {
    let (_, payload) = main.checkpoint();
    let is_unused = payload.is_empty();
    let checkpoint = Checkpoint::decode(payload)
        .map_err(|_| refused(Row::Unknown, format!("the checkpoint of {} does not decode", dir.display())))?;
    let layout = match &checkpoint.separate {
        Some(_) => Some(LogLayout::Separate),
        None if is_unused && holds_no_transaction(main)? => None,
        None => Some(LogLayout::Shared),
    };
    Ok((layout, checkpoint))
}

/// Returns whether the log holds no transaction. The first start logs the head of the binlog's first file
/// before its first checkpoint, in both layouts.
fn holds_no_transaction(log: &mut Recovery) -> Result<bool, LogError> {
    let mut is_so = true;
    while let Some(record) = log.next()?.filter(|_| is_so) {
        is_so = record.kind == record::BINLOG;
    }
    log.rewind();
    Ok(is_so)
}

/// Returns whether the log holds no record.
fn is_empty(log: &mut Recovery) -> Result<bool, LogError> {
    let is_empty = log.next()?.is_none();
    log.rewind();
    Ok(is_empty)
}

fn open_separate(
    world: &World,
    options: &CoordinatorOptions,
    engines: &[Arc<dyn Engine>],
    main: Recovery,
    checkpoint: Checkpoint,
) -> Result<FoundSeparate, RecoveryError> {
    let named = checkpoint.separate.as_ref();
    let is_here = |id: &ParticipantId| engines.iter().any(|engine| engine.id() == *id);
    if let Some((id, _)) = named.and_then(|named| named.from.iter().find(|(id, _)| !is_here(id))) {
        let dir = engine_dir(&options.datadir, *id);
        return Err(refused(Row::Unknown, format!("{} is the log of participant {id}", dir.display())));
    }
    let mut pair = named.map(|named| named.pair);
    let from = main.checkpoint().0;
    let dir = main_dir(&options.datadir);
    let mut logs = vec![OwnRecovery { engine: None, dir, from, log: main }];
    for engine in engines {
        let from = named.and_then(|named| named.from.iter().find(|(id, _)| *id == engine.id()));
        let from = from.map(|(_, lsn)| *lsn);
        logs.push(open_engine_log(world, options, &**engine, from, &mut pair)?);
    }
    let pair = pair.unwrap_or_else(|| Pair(world.rng.next_u64()));
    Ok(FoundSeparate { pair, logs, checkpoint })
}

/// Opens or creates the log of an engine. `from` is the LSN where recovery starts in it, or `None` if the
/// coordinator's log does not name it yet.
fn open_engine_log(
    world: &World,
    options: &CoordinatorOptions,
    engine: &dyn Engine,
    from: Option<Lsn>,
    pair: &mut Option<Pair>,
) -> Result<OwnRecovery, RecoveryError> {
    let id = engine.id();
    let dir = engine_dir(&options.datadir, id);
    let lost = |what: &str| refused(Row::LogLost, format!("{}: {what}", dir.display()));
    if from.is_some() && !Recovery::is_there(world, &dir) {
        return Err(lost("the log is missing"));
    }
    let own = *pair.get_or_insert_with(|| Pair(world.rng.next_u64()));
    let payload = record::encode_engine_log(own, id);
    // The log begins after the LSN up to which the engine is durable: LSNs of another layout mean nothing
    // here.
    let new = NewLog { from: engine.durable_lsn(), payload };
    // The archive has the coordinator's log.
    let log_options = LogOptions { is_archived: false, ..options.log.clone() };
    let mut log = Recovery::open_or_make(world, &dir, log_options, new)?;
    let (start, payload) = log.checkpoint();
    let found = record::decode_engine_log(payload).map_err(|_| lost("it is no engine's log"))?;
    match from {
        Some(from) if found != (own, id) => {
            Err(lost(&format!("the log belongs to another data directory, or engine, than its LSN {from}")))
        }
        Some(from) if start > from => {
            Err(lost(&format!("the log begins at LSN {start}, and log/ needs it from LSN {from} on")))
        }
        Some(from) => Ok(OwnRecovery { engine: Some(id), dir, from, log }),
        // Left over from an interrupted start.
        None if found.1 == id && is_empty(&mut log)? => {
            *pair = Some(if found.0 == own { own } else { found.0 });
            Ok(OwnRecovery { engine: Some(id), dir, from: start, log })
        }
        None => Err(lost("log/ does not know the log, which holds transactions")),
    }
}

impl FoundLogs {
    /// Returns a copy of a control file that was found torn or damaged. Opening the logs repairs it.
    pub fn damaged_copy(&self) -> Option<(std::path::PathBuf, u64)> {
        let of = |log: &Recovery| log.damaged_copy().map(|(file, offset)| (file.to_owned(), offset));
        match self {
            FoundLogs::Shared(log) => of(log),
            FoundLogs::Separate(found) => found.logs.iter().find_map(|own| of(&own.log)),
        }
    }

    /// Opens the logs for appending, cut to the part that recovery has kept.
    pub fn finish(
        self,
        decided: cohort_base::CommitSeq,
        has_threads: bool,
    ) -> Result<Box<dyn Logs>, LogError> {
        match self {
            FoundLogs::Shared(log) => Ok(Box::new(SharedLog(log.finish()?))),
            FoundLogs::Separate(FoundSeparate { pair, logs, .. }) => {
                let mut main = None;
                let mut engines: Vec<(ParticipantId, Log)> = Vec::new();
                for own in logs {
                    let log = own.log.finish()?;
                    match own.engine {
                        None => main = Some(log),
                        Some(engine) => engines.push((engine, log)),
                    }
                }
                let main = main.expect("the coordinator's log is the first");
                Ok(Box::new(SeparateLogs::new(pair, main, engines, decided, has_threads)))
            }
        }
    }
}
