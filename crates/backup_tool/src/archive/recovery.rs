//! Restore to a point in time: the newest backup before it, the ranges of the archive after that backup, and
//! a server that applies them.
//!
//! # Steps
//! 1. The timeline, by default the one on which the newest backup lies ([`choose`]), and the newest backup in
//!    its history that is not after the target.
//! 2. The backup is restored as module `target` describes, up to the state in which no server starts.
//! 3. Segments are fetched into [`FOLDER_IN_TARGET`], with the files that they name, until one ends after
//!    the target. A gap before the target is a failure, one after its transactions or its time is not.
//! 4. The manifest gets its name, and `cohortd --apply-archive` applies the folder, which is removed.
//!
//! On failure of step 4 the directory is marked as unfinished again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use cohort_backup_format::{HISTORY, TimelineStart, UNFINISHED, history_text};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Branch, Segment, Stored, histories, read_file, read_segment, stored};
use crate::catalogue::Catalogue;
use crate::failure::{Failure, Result};
use crate::lock::Lock;
use crate::progress::Progress;
use crate::repository::Repository;
use crate::restore::{fill, finish};
use crate::target::Target;

/// Folder of the fetched objects in the target; removed at the end.
const FOLDER_IN_TARGET: &str = "cohort-archive";
/// Resolution of the cut in a manifest.
const CUT_RESOLUTION: SignedDuration = SignedDuration::from_secs(1);
/// Maximum length of the server's messages in a failure.
const MESSAGES_MAX: usize = 4 << 10;

/// End of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All that the archive has.
    Latest,
    /// The last transaction that was committed until then.
    Time(Timestamp),
    /// The transaction with this GTID, or with each of these in different domains.
    Gtid(String),
}

/// The target of a restore.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub stop: Stop,
    /// Chosen unless given.
    pub timeline: Option<u32>,
    /// Name of the backup; chosen unless given.
    pub backup: Option<&'a str>,
    pub server: &'a Path,
}

/// The outcome.
#[derive(Debug)]
pub struct Recovered {
    pub catalogue: Catalogue,
    /// The server's report; `None` if the archive has nothing after the backup.
    pub report: Option<Value>,
    /// The target was reached; false if the archive ends before it.
    pub is_reached: bool,
    /// Time of the newest range that was applied.
    pub archived_until: Option<Timestamp>,
    pub seconds: f64,
}

/// Returns the sequence number of each domain of a GTID position.
fn domains(position: &str) -> Option<BTreeMap<u32, u64>> {
    let gtids = position.split(',').map(str::trim).filter(|gtid| !gtid.is_empty());
    let parsed = gtids.map(|gtid| {
        let mut numbers = gtid.split('-');
        let domain = numbers.next()?.parse().ok()?;
        let _server: u32 = numbers.next()?.parse().ok()?;
        let sequence = numbers.next()?.parse().ok()?;
        numbers.next().is_none().then_some((domain, sequence))
    });
    parsed.collect()
}

/// Parses a time: with an offset, or in UTC.
pub fn parse_time(text: &str) -> Result<Timestamp> {
    let plain = || text.parse::<jiff::civil::DateTime>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok();
    let parsed = text.parse::<Timestamp>().ok().or_else(|| plain().map(|zoned| zoned.timestamp()));
    parsed.ok_or_else(|| {
        Failure::Refused(format!("'{text}' is no time; write it as '2026-11-28 19:30:00', which is UTC"))
    })
}

impl Stop {
    /// Returns whether a backup's state is not after the target.
    fn is_after(&self, backup: &Catalogue) -> Result<bool> {
        let damaged = |what: &str| {
            Failure::Damaged(format!("the manifest of backup {} has no correct {what}", backup.name))
        };
        match self {
            Stop::Latest => Ok(true),
            Stop::Time(time) => {
                let cut: Timestamp = backup.manifest.cut.parse().map_err(|_| damaged("time"))?;
                Ok(cut + CUT_RESOLUTION <= *time)
            }
            Stop::Gtid(gtid) => {
                let refused = || Failure::Refused(format!("'{gtid}' is no GTID, such as 0-1-77"));
                let wanted = domains(gtid).filter(|wanted| !wanted.is_empty()).ok_or_else(refused)?;
                let has =
                    domains(&backup.manifest.gtid_binlog_pos).ok_or_else(|| damaged("GTID position"))?;
                Ok(wanted.iter().all(|(domain, sequence)| has.get(domain).is_none_or(|it| it <= sequence)))
            }
        }
    }

    /// Returns whether a position has the transactions of the target, if that names transactions.
    fn is_within(&self, position: &str) -> bool {
        let Stop::Gtid(gtid) = self else { return false };
        let (Some(wanted), Some(has)) = (domains(gtid), domains(position)) else { return false };
        wanted.iter().all(|(domain, sequence)| has.get(domain).is_some_and(|it| it >= sequence))
    }

    fn option(&self) -> Option<String> {
        match self {
            Stop::Latest => None,
            Stop::Time(time) => Some(format!("--stop-time=@{}", time.as_microsecond())),
            Stop::Gtid(gtid) => Some(format!("--stop-gtid={gtid}")),
        }
    }
}

/// Returns whether a backup's state lies on the way to the end of a timeline.
fn is_on_way(backup: &Catalogue, history: &[Branch]) -> bool {
    let own = backup.manifest.timeline;
    let next = history.iter().skip_while(|(timeline, _)| *timeline != own).nth(1);
    let is_in = history.iter().any(|(timeline, _)| *timeline == own);
    is_in && next.is_none_or(|(_, begin)| backup.manifest.cut_lsn <= *begin)
}

/// Segments after a backup, in order. If the first one begins where the backup was cut, the one before it is
/// among them: the server compares it with the log of the backup.
#[derive(Debug, Default, PartialEq, Eq)]
struct Way {
    segments: Vec<Segment>,
    /// Timeline, and LSN where the first gap begins, if a later range exists.
    gap: Option<(u32, u64)>,
}

/// Finds the way from an LSN of a timeline along a history.
fn way(timelines: &BTreeMap<u32, Stored>, history: &[Branch], timeline: u32, cut: u64) -> Way {
    let mut way = Way::default();
    let path: Vec<_> = history.iter().skip_while(|(number, _)| *number != timeline).collect();
    let nothing = Stored::default();
    let mut position = cut;
    for (n, (number, _)) in path.iter().enumerate() {
        let end = path.get(n + 1).map_or(u64::MAX, |(_, begin)| *begin);
        let stored = timelines.get(number).unwrap_or(&nothing);
        while position < end {
            // A segment begins before the first position only where a backup was cut, or a timeline begins.
            let fits = |s: &&Segment| s.from <= position && position < s.to;
            let exact = match stored.beginning_at(position) {
                [] => None,
                [one] => Some(one),
                several => several.iter().max_by_key(|s| (reach(stored, s), s.to)),
            };
            let Some(found) = exact.or_else(|| stored.segments.iter().rfind(fits)) else {
                let has_more = |stored: &Stored| stored.end().is_some_and(|end| end > position);
                let is_gap = path[n..].iter().any(|(number, _)| timelines.get(number).is_some_and(has_more));
                way.gap = is_gap.then_some((*number, position));
                return way;
            };
            way.segments.push(*found);
            position = found.to;
        }
        position = position.min(end);
    }
    way
}

/// Returns where the segments that follow a segment without a gap end. Two processes may have stored the same
/// part of the log in different segments, the last of which has no successor.
fn reach(stored: &Stored, segment: &Segment) -> u64 {
    let mut end = segment.to;
    // The longest of them comes first.
    while let Some(next) = stored.beginning_at(end).first() {
        end = next.to;
    }
    end
}

/// A backup, and the way from there.
struct Plan {
    catalogue: Catalogue,
    /// The timelines up to the target's, which is the last.
    history: Vec<Branch>,
    way: Way,
}

/// Chooses the timeline of a restore that names none. Several timelines go on after the point where they part
/// if a server was restored to an earlier moment, or if two servers archive here. The newest backup decides:
/// it lies on the way to the right one.
fn choose(repository: &Repository, timelines: &BTreeMap<u32, Stored>) -> Result<u32> {
    let place = repository.store().place();
    let with_log = timelines.iter().filter(|(_, stored)| !stored.segments.is_empty());
    let histories = histories(repository, with_log.map(|(number, _)| *number))?;
    // A timeline that another one continues at its very end is no end of its own.
    let goes_on = |number: u32| {
        let end = timelines[&number].end().unwrap_or(0);
        let continued = histories.values().flat_map(|it| it.history.windows(2));
        !continued.into_iter().any(|pair| pair[0].0 == number && pair[1].1 >= end)
    };
    let mut ends: Vec<u32> = histories.keys().copied().filter(|number| goes_on(*number)).collect();
    if let Some(newest) = repository.backups()?.pop() {
        let newest = repository.catalogue(&newest)?;
        let on_way: Vec<u32> =
            ends.iter().copied().filter(|number| is_on_way(&newest, &histories[number].history)).collect();
        if !on_way.is_empty() {
            ends = on_way;
        }
    }
    match ends[..] {
        [] => Err(Failure::Refused(format!(
            "repository {place} has no archive of the log: set archive_to on the server. Without it `restore` restores \
             the state of a backup"
        ))),
        [one] => Ok(one),
        _ => Err(Failure::Refused(format!(
            "repository {place} has several timelines that go on after the newest backup: {}. `list` shows their times; \
             name one with --timeline",
            ends.iter().map(|number| format!("{number:08x}")).collect::<Vec<_>>().join(", ")
        ))),
    }
}

fn plan(repository: &Repository, request: &Request<'_>) -> Result<Plan> {
    let place = repository.store().place();
    let timelines = stored(repository)?;
    let number = match request.timeline {
        Some(number) => number,
        None => choose(repository, &timelines)?,
    };
    let histories = histories(repository, std::iter::once(number))?;
    let history = histories.get(&number).map(|found| found.history.clone()).ok_or_else(|| {
        Failure::Refused(format!("repository {place} has no archive of timeline {number:08x}"))
    })?;
    let mut found = None;
    match request.backup {
        Some(name) => {
            let catalogue = repository.find(name)?;
            if !is_on_way(&catalogue, &history) || !request.stop.is_after(&catalogue)? {
                return Err(Failure::Refused(format!(
                    "backup {} is after the target, or not in the history of timeline {number:08x}",
                    catalogue.name
                )));
            }
            found = Some(catalogue);
        }
        None => {
            for name in repository.backups()?.iter().rev() {
                let catalogue = repository.catalogue(name)?;
                if is_on_way(&catalogue, &history) && request.stop.is_after(&catalogue)? {
                    found = Some(catalogue);
                    break;
                }
            }
        }
    }
    let catalogue = found.ok_or_else(|| {
        Failure::Refused(format!(
            "repository {place} has no backup before the target in the history of timeline {number:08x}; `list` \
             shows the states of the backups"
        ))
    })?;
    let (own, cut) = (catalogue.manifest.timeline, catalogue.manifest.cut_lsn);
    let mut way = way(&timelines, &history, own, cut);
    if way.segments.first().is_some_and(|first| (first.timeline, first.from) == (own, cut)) {
        let before = timelines[&own].segments.iter().find(|segment| segment.to == cut);
        way.segments.splice(0..0, before.copied());
    }
    Ok(Plan { catalogue, history, way })
}

/// Restores the state at a target into a directory that is new or empty.
pub fn recover(
    repository: &Repository,
    request: &Request<'_>,
    directory: &Path,
    progress: &Progress,
) -> Result<Recovered> {
    let begun = Instant::now();
    let _lock = Lock::read(repository, "restore")?;
    let Plan { catalogue, history, mut way } = plan(repository, request)?;
    // The backup ends with the transaction of the target.
    let is_backup =
        matches!(&request.stop, Stop::Gtid(gtid) if gtid.trim() == catalogue.manifest.gtid_binlog_pos);
    if is_backup {
        way = Way::default();
    }
    let target = Target::open(directory)?;
    let log: u64 = way.segments.iter().map(|segment| segment.stored).sum();
    progress.expect(Some(catalogue.bytes() + log));
    fill(repository, &catalogue, &target, progress)?;
    let folder = target.path().join(FOLDER_IN_TARGET);
    let archived_until = fetch(repository, &catalogue, &way, &request.stop, &folder, progress)?;
    let (timeline, _) = *history.last().expect("a history has its own timeline");
    finish(&target, &catalogue)?;
    let mut report = None;
    if archived_until.is_some() {
        write_history(&folder, timeline, &history)?;
        let applied = apply(request, &catalogue, timeline, &target, &folder);
        let applied = applied.and_then(|report| check_time(request, archived_until, report));
        if applied.is_err() {
            let mark = target.path().join(UNFINISHED);
            File::create(&mark).map_err(|error| Failure::of_file(&mark, error))?;
        }
        report = Some(applied?);
        std::fs::remove_dir_all(&folder).map_err(|error| Failure::of_file(&folder, error))?;
        target.own_all()?;
    }
    let is_reached =
        is_backup || request.stop == Stop::Latest || report.as_ref().is_some_and(is_stop_reached);
    let until = archived_until.filter(|time| *time > 0);
    let until = until.and_then(|time| Timestamp::from_microsecond(time as i64).ok());
    let seconds = begun.elapsed().as_secs_f64();
    Ok(Recovered { catalogue, report, is_reached, archived_until: until, seconds })
}

fn is_stop_reached(report: &Value) -> bool {
    report["is_stop_reached"] != Value::Bool(false)
}

/// Refuses a state that ends before the target although the archive goes on: only the segments up to the
/// first later time were fetched, and their records do not have that time. So it is with a clock that was
/// set back.
fn check_time(request: &Request<'_>, archived_until: Option<u64>, report: Value) -> Result<Value> {
    match (&request.stop, archived_until) {
        (Stop::Time(target), Some(newest))
            if newest > target.as_microsecond().max(0) as u64 && !is_stop_reached(&report) =>
        {
            Err(Failure::Refused(
                "the server's clock was set back before the target: its log has no moment of that time. Restore \
                 with --to-gtid or --to-latest"
                    .to_owned(),
            ))
        }
        _ => Ok(report),
    }
}

/// Fetches the segments up to the target, and the files that they name. Returns the newest time, 0 if it is
/// unknown; `None` if there was nothing to fetch.
fn fetch(
    repository: &Repository,
    catalogue: &Catalogue,
    way: &Way,
    stop: &Stop,
    folder: &Path,
    progress: &Progress,
) -> Result<Option<u64>> {
    let target = match stop {
        Stop::Time(time) => time.as_microsecond().max(0) as u64,
        _ => u64::MAX,
    };
    let mut newest = None;
    let mut position = String::new();
    let mut files = BTreeSet::new();
    let mut chain = None;
    for segment in &way.segments {
        let read = read_segment(repository, segment)?;
        let begin = read.frames[0].chain.map(|chain| (segment.timeline, segment.from, chain));
        if let (Some((timeline, end, known)), Some(begin)) = (chain, begin)
            && (timeline, end) == (begin.0, begin.1)
            && known != begin.2
        {
            return Err(Failure::Damaged(format!(
                "the object '{}' has the log of another server than the one before it: a copy of the data directory was \
                 archived to the same place. Restore to a moment before LSN {end}, or from a backup that was taken after it",
                segment.name()
            )));
        }
        chain = begin.map(|_| (segment.timeline, segment.to, read.chain.1));
        let is_later = |time: u64| time > target;
        let last = read.frames.iter().map(|range| range.last_us).max().unwrap_or(0);
        let cut = catalogue.manifest.cut_lsn;
        let is_needed = |to: u64| segment.timeline != catalogue.manifest.timeline || to > cut;
        let log = folder.join(segment.name().split_once('/').expect("it has folders").1);
        create(&log, |file| file.write_all(&read.contents).map_err(|error| Failure::of_file(&log, error)))?;
        progress.add(segment.stored);
        let ranges = read.frames.iter().filter(|range| is_needed(range.to));
        for name in ranges.flat_map(|range| &range.files).filter(|name| *name != HISTORY) {
            if files.insert((segment.timeline, name.clone())) {
                let path = folder.join(format!("{:08x}/files/{name}", segment.timeline));
                create(&path, |file| {
                    let write =
                        |bytes: &[u8]| file.write_all(bytes).map_err(|error| Failure::of_file(&path, error));
                    read_file(repository, segment.timeline, name, write).map(drop)
                })?;
            }
        }
        if !is_needed(segment.to) {
            continue;
        }
        newest = newest.max(Some(last));
        if let Some(range) = read.frames.last() {
            position.clone_from(&range.gtid_position);
        }
        if is_later(last) {
            return Ok(newest);
        }
    }
    match way.gap {
        None => Ok(newest),
        // The transactions of the target are before the gap.
        Some(_) if stop.is_within(&position) => Ok(newest),
        Some((timeline, lsn)) => {
            let time = newest.and_then(|time| Timestamp::from_microsecond(time as i64).ok());
            Err(Failure::Damaged(format!(
                "the archive has a gap at LSN {lsn} of timeline {timeline:08x}, before the target. A restore with \
                 --to-time can reach {}; later states need a backup that was taken after the gap",
                time.map_or_else(|| catalogue.manifest.cut.clone(), |time| time.to_string())
            )))
        }
    }
}

/// Writes the file that states which timeline follows which.
fn write_history(folder: &Path, timeline: u32, history: &[Branch]) -> Result<()> {
    let path = folder.join(format!("{timeline:08x}/files/{HISTORY}"));
    let lines =
        history_text(history.iter().map(|(timeline, lsn)| TimelineStart { timeline: *timeline, lsn: *lsn }));
    create(&path, |file| file.write_all(lines.as_bytes()).map_err(|error| Failure::of_file(&path, error)))
}

fn create(path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let failed = |error| Failure::of_file(path, error);
    std::fs::create_dir_all(path.parent().expect("below the target")).map_err(failed)?;
    write(&mut File::create_new(path).map_err(failed)?)
}

/// Runs the server that applies the folder, and returns its report.
fn apply(
    request: &Request<'_>,
    catalogue: &Catalogue,
    timeline: u32,
    target: &Target,
    folder: &Path,
) -> Result<Value> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(|error| Failure::of_file(path, error));
    let mut command = Command::new(request.server);
    command.arg("--no-defaults");
    command.arg(format!("--datadir={}", absolute(target.path())?.display()));
    command.arg(format!("--apply-archive={}", absolute(folder)?.display()));
    command.args(request.stop.option());
    command.arg(format!("--stop-timeline={timeline}"));
    command.args(server_options(catalogue));
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| Failure::of_file(request.server, error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let report = text.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
    match report {
        Some(report) if output.status.success() => Ok(report),
        _ => {
            let messages = String::from_utf8_lossy(&output.stderr);
            let from = messages.len().saturating_sub(MESSAGES_MAX);
            let begin = (from..messages.len()).find(|at| messages.is_char_boundary(*at)).unwrap_or(from);
            Err(Failure::Failed(format!(
                "{} --apply-archive: {}: {}",
                request.server.display(),
                output.status,
                messages[begin..].trim()
            )))
        }
    }
}

/// Returns the options of a server that starts in a restored directory.
pub fn server_options(catalogue: &Catalogue) -> Vec<String> {
    let log_bin = match catalogue.manifest.log_bin.as_str() {
        "" => "--skip-log-bin".to_owned(),
        name => format!("--log-bin={name}"),
    };
    let mut options = vec![log_bin, format!("--server-id={}", catalogue.manifest.server_id.max(1))];
    if catalogue.manifest.layout == "separate" {
        options.push("--log-layout=separate".to_owned());
    }
    options
}

/// Returns the server's program: the given one, that next to this program, or that of PATH.
pub fn find_server(given: Option<&Path>) -> PathBuf {
    const NAME: &str = "cohortd";
    let next = std::env::current_exe().ok().map(|own| own.with_file_name(NAME)).filter(|next| next.exists());
    given.map(Path::to_owned).or(next).unwrap_or_else(|| PathBuf::from(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(segments: &[(u32, u64, u64)]) -> BTreeMap<u32, Stored> {
        let mut timelines: BTreeMap<u32, Stored> = BTreeMap::new();
        for &(timeline, from, to) in segments {
            let segment = Segment { timeline, from, to, stored: 1 };
            timelines.entry(timeline).or_default().segments.push(segment);
        }
        timelines
    }

    #[test]
    fn ways_follow_the_history_and_name_their_gap() {
        let history = [(1, 0), (9, 50)];
        type Case<'a> = (&'a [(u32, u64, u64)], u32, u64, &'a [(u32, u64)], Option<(u32, u64)>);
        let cases: &[Case<'_>] = &[
            // The backup was cut within a segment; the parent is used up to the branch.
            (&[(1, 0, 20), (1, 20, 60), (1, 60, 80), (9, 50, 70)], 1, 10, &[(1, 0), (1, 20), (9, 50)], None),
            // The backup is younger than the branch.
            (&[(1, 0, 60), (9, 50, 70), (9, 70, 90)], 9, 70, &[(9, 70)], None),
            (&[(1, 0, 20), (1, 30, 60), (9, 50, 70)], 1, 0, &[(1, 0)], Some((1, 20))),
            (&[(1, 0, 20), (9, 50, 70)], 1, 0, &[(1, 0)], Some((1, 20))),
            (&[(1, 0, 60), (9, 55, 70)], 1, 0, &[(1, 0)], Some((9, 50))),
            // Nothing after the backup.
            (&[(1, 0, 50)], 1, 50, &[], None),
            (&[], 1, 50, &[], None),
            // The newest range ends before the branch, and nothing follows.
            (&[(1, 0, 20)], 1, 0, &[(1, 0)], None),
            // Two segments begin at one LSN: the longer one is used.
            (&[(1, 0, 20), (1, 0, 40), (1, 40, 50), (9, 50, 51)], 1, 0, &[(1, 0), (1, 40), (9, 50)], None),
        ];
        for (segments, timeline, cut, expected, gap) in cases {
            let found = way(&archive(segments), &history, *timeline, *cut);
            let names: Vec<_> = found.segments.iter().map(|s| (s.timeline, s.from)).collect();
            assert_eq!((&names[..], found.gap), (*expected, *gap), "{segments:?} from {timeline} {cut}");
        }
    }

    #[test]
    fn times_and_positions_are_parsed() {
        let second = |text: &str| parse_time(text).map(|time| time.as_second()).ok();
        assert_eq!(second("2026-11-28 19:30:00"), Some(1_795_894_200));
        assert_eq!(second("2026-11-28T20:30:00+01:00"), Some(1_795_894_200));
        assert_eq!(
            parse_time("2026-11-28 19:30:00.5").expect("a time").as_microsecond() % 1_000_000,
            500_000
        );
        assert_eq!((second("yesterday"), second("2026-13-01")), (None, None));
        assert_eq!(domains("0-1-77, 3-1-5"), Some(BTreeMap::from([(0, 77), (3, 5)])));
        assert_eq!((domains("0-1"), domains("x"), domains("0-1-2-3")), (None, None, None));
    }
}
