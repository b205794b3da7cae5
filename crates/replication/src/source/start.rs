//! Determines where a dump starts.

use cohort_base::{BinlogPos, DomainId, Gtid};
use cohort_binlog::event::MAGIC;
use cohort_binlog::{BinlogError, BinlogFileWriter, GtidState};
use cohort_types::SqlError;

use super::errors::{self, Coordinates};
use super::filter::{Filter, Wanted, missing};
use super::request::{DumpRequest, GtidRequest, StartAt};

/// A valid start.
#[derive(Debug)]
pub(crate) struct Start {
    pub at: BinlogPos,
    pub filter: Filter,
}

/// Finds the start. `logged` is the GTID state after the newest transaction. The caller must prevent purge
/// meanwhile.
pub(crate) fn find(
    files: &BinlogFileWriter,
    logged: &GtidState,
    request: &DumpRequest,
) -> Result<Start, SqlError> {
    // The writer is a few milliseconds late, and the requested file may be one that it has not begun yet.
    match files.step() {
        Ok(()) | Err(BinlogError::NoSpace { .. }) => {}
        Err(error) => return Err(errors::unreadable(&error, &Coordinates::default())),
    }
    match &request.start {
        StartAt::File { name, offset } => by_file(files, name, *offset),
        StartAt::Gtid(request) => by_gtid(files, logged, request),
    }
}

fn by_file(files: &BinlogFileWriter, name: &str, offset: u64) -> Result<Start, SqlError> {
    let unknown = || BinlogError::UnknownFile { name: name.to_owned() };
    let number = files.with_files(|files| match name {
        "" => files.numbers().first().copied().ok_or_else(unknown),
        name => files.find(name),
    });
    let number = number.map_err(|error| errors::unreadable(&error, &Coordinates::default()))?;
    let name = files.name().file(number);
    let head = MAGIC.len() as u64;
    let mut at = Coordinates {
        first_file: name.clone(),
        first_offset: offset,
        file: name,
        last_event: head,
        last_byte: head,
    };
    let unreadable = |error: BinlogError, at: &Coordinates| errors::unreadable(&error, at);
    let mut reader = files.with_files(|files| files.reader(number)).map_err(|e| unreadable(e, &at))?;
    let end = match files.tail().end() {
        Some(end) if end.file == number => end.offset,
        _ => reader.file_len().map_err(|e| unreadable(e, &at))?,
    };
    if offset < head || offset > end {
        let what = "Client requested master to start replication from impossible position";
        return Err(errors::fatal(at.detail(what)));
    }
    // Reading there detects an offset inside an event.
    reader.seek(offset);
    at.last_event = offset;
    at.last_byte = offset;
    match reader.next_event() {
        Ok(Some(event)) if event.header.log_pos == 0 || event.header.log_pos == event.end() as u32 => {}
        Ok(None) if offset == end => {}
        _ => return Err(errors::fatal(at.detail("bogus data in log event"))),
    }
    Ok(Start { at: BinlogPos { file: number, offset }, filter: Filter::default() })
}

fn by_gtid(files: &BinlogFileWriter, logged: &GtidState, request: &GtidRequest) -> Result<Start, SqlError> {
    let mut filter = Filter::by_gtid(request.is_strict, request.until.as_deref());
    for &gtid in &request.position {
        if let Some(wanted) = wanted(&mut filter, gtid, logged, request)? {
            filter.wanted.insert(gtid.domain, wanted);
        }
    }
    let numbers = files.with_files(|files| files.numbers().to_vec());
    for &number in numbers.iter().rev() {
        let list = files.with_files(|files| files.state_at_start(number));
        let list = list.map_err(|e| errors::unreadable(&e, &Coordinates::default()))?.list();
        if !holds_all_wanted(&filter, &list) {
            continue;
        }
        start_after_list(&mut filter, &list);
        return Ok(Start { at: BinlogPos { file: number, offset: MAGIC.len() as u64 }, filter });
    }
    Err(errors::purged())
}

/// Checks one GTID of the replica's position against the binary log. Never returns `None`: an unknown domain
/// is remembered.
fn wanted(
    filter: &mut Filter,
    gtid: Gtid,
    logged: &GtidState,
    request: &GtidRequest,
) -> Result<Option<Wanted>, SqlError> {
    let known = Some(Wanted { gtid, is_unknown_here: false });
    let has = |gtid: Gtid| logged.seq_no(gtid.domain, gtid.server).is_some_and(|n| n >= gtid.seq_no);
    if has(gtid) {
        return Ok(known);
    }
    let Some(newest) = newest_of(logged, gtid.domain) else {
        return Ok(Some(Wanted { gtid, is_unknown_here: true }));
    };
    if request.ignores_duplicates && newest.seq_no < gtid.seq_no {
        return Ok(known);
    }
    if let Some(until) = &mut filter.until {
        // The end lies before the start, so this domain has nothing to send.
        match until.get(&gtid.domain).copied() {
            None => return Ok(known),
            Some(last) if has(last) => {
                until.remove(&gtid.domain);
                return Ok(known);
            }
            Some(_) => {}
        }
    }
    Err(missing(gtid, logged))
}

fn newest_of(state: &GtidState, domain: DomainId) -> Option<Gtid> {
    state.position().into_iter().find(|gtid| gtid.domain == domain)
}

/// Returns whether everything that the replica lacks is in the file that starts with this list, or in later
/// files.
fn holds_all_wanted(filter: &Filter, list: &[Gtid]) -> bool {
    list.iter().enumerate().all(|(n, before)| {
        // A domain of which the replica has nothing starts in an earlier file.
        let Some(Wanted { gtid: has, .. }) = filter.wanted.get(&before.domain) else { return false };
        if has.server != before.server || has.seq_no > before.seq_no {
            return true;
        }
        // The replica's newest GTID is in an earlier file. That is fine only if it is the domain's last one
        // there.
        let is_newest = list.get(n + 1).is_none_or(|next| next.domain != before.domain);
        has.seq_no == before.seq_no && is_newest
    })
}

/// Removes the domains from the filter whose position is covered by the list.
fn start_after_list(filter: &mut Filter, list: &[Gtid]) {
    for before in list {
        if filter.wanted.get(&before.domain).is_some_and(|wanted| wanted.gtid == *before) {
            filter.wanted.remove(&before.domain);
        }
        if let Some(until) = &mut filter.until
            && let Some(last) = until.get(&before.domain)
            && last.server == before.server
            && last.seq_no <= before.seq_no
        {
            until.remove(&before.domain);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gtids(text: &str) -> Vec<Gtid> {
        Gtid::parse_list(text).expect("valid")
    }

    fn filter(position: &str) -> Filter {
        let wanted =
            gtids(position).into_iter().map(|gtid| (gtid.domain, Wanted { gtid, is_unknown_here: false }));
        let mut filter = Filter::by_gtid(false, None);
        filter.wanted = wanted.collect();
        filter
    }

    #[test]
    fn the_newest_file_that_reaches_back_far_enough_is_taken() {
        for (position, list, fits) in [
            ("", "", true),
            ("", "0-1-5", false),
            ("0-1-5", "0-1-5", true),
            ("0-1-4", "0-1-5", false),
            ("0-1-6", "0-1-5", true),
            ("0-1-5", "0-1-5,0-2-6", false),
            ("0-2-6", "0-1-5,0-2-6", true),
            ("0-1-5", "0-1-5,3-1-1", false),
            ("0-1-5,3-1-1", "0-1-5,3-1-1", true),
            ("0-3-9", "0-1-5", true),
        ] {
            assert_eq!(holds_all_wanted(&filter(position), &gtids(list)), fits, "{position} in {list}");
        }
    }

    #[test]
    fn missing_positions_are_refused_and_unknown_domains_accepted() {
        let logged = GtidState::from_list(&gtids("0-1-5,0-2-7"));
        let mut filter = Filter::default();
        let mut request = GtidRequest::default();
        let mut ask = |text: &str, request: &GtidRequest| {
            wanted(&mut filter, text.parse().expect("valid"), &logged, request)
                .map(|w| w.map(|w| w.is_unknown_here))
        };
        assert_eq!(ask("0-1-5", &request).expect("known"), Some(false));
        assert_eq!(ask("9-1-5", &request).expect("unknown domain"), Some(true));
        let ahead = ask("0-2-8", &request).expect_err("ahead").message;
        assert!(ahead.ends_with("GTID 0-2-8, which is not in the master's binlog"), "{ahead}");
        let diverged = ask("0-3-6", &request).expect_err("diverged").message;
        assert!(diverged.contains("extra erroneous transactions"), "{diverged}");
        request.ignores_duplicates = true;
        assert_eq!(ask("0-2-8", &request).expect("it may have it from elsewhere"), Some(false));
    }
}
