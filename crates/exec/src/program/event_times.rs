//! The times at which events run.
//!
//! An event that repeats runs at its start plus a multiple of its interval. The multiples are counted on the
//! local clock of the event's time zone: a daily event keeps its hour when daylight saving begins or ends.
//! Runs that were missed, because the server or the scheduler was stopped, are not made up for. A run at one
//! time is: it happens as soon as the scheduler runs.

use cohort_catalog::EventSchedule;
use cohort_types::{DateTime, Interval, IntervalUnit, LocalToUtc, TimeZone};

const SECOND: i64 = 1_000_000;

/// Returns the time of the next run, in seconds since 1970 UTC: not before `now`, and after `last`, the last
/// run. Returns `None` if the event will not run again.
pub fn next_run(schedule: &EventSchedule, zone: &dyn TimeZone, last: Option<i64>, now: i64) -> Option<i64> {
    match schedule {
        EventSchedule::At(at) => last.is_none().then_some(*at),
        EventSchedule::Every { count, unit, starts, ends } => {
            let starts = (*starts)?;
            let earliest = now.max(last.map_or(i64::MIN, |last| last + 1));
            let next = match earliest <= starts {
                true => starts,
                false => repeated(starts, step(*unit, *count)?, zone, earliest)?,
            };
            ends.is_none_or(|ends| next <= ends).then_some(next)
        }
    }
}

/// An interval of one kind: compound units are counted in the smallest one.
enum Step {
    Months(i64),
    Seconds(i64),
}

fn step(unit: IntervalUnit, count: u64) -> Option<Step> {
    use IntervalUnit as U;
    let count = i64::try_from(count).ok().filter(|count| *count > 0)?;
    let of = |each: i64| count.checked_mul(each);
    Some(match unit {
        U::Year => Step::Months(of(12)?),
        U::Quarter => Step::Months(of(3)?),
        U::Month | U::YearMonth => Step::Months(count),
        U::Week => Step::Seconds(of(7 * 86_400)?),
        U::Day => Step::Seconds(of(86_400)?),
        U::Hour | U::DayHour => Step::Seconds(of(3600)?),
        U::Minute | U::DayMinute | U::HourMinute => Step::Seconds(of(60)?),
        _ => Step::Seconds(count),
    })
}

/// Returns the first start plus a multiple of the step that is not before `earliest`.
fn repeated(starts: i64, step: Step, zone: &dyn TimeZone, earliest: i64) -> Option<i64> {
    let (first, wanted) = (zone.to_local(starts * SECOND), zone.to_local(earliest * SECOND));
    let mut n = match step {
        Step::Seconds(seconds) => (wanted.clock_micros() - first.clock_micros()) / SECOND / seconds,
        Step::Months(months) => (months_of(&wanted) - months_of(&first)) / months,
    };
    // The estimate may be one too small, and an hour of the local clock may come twice.
    n = (n - 1).max(0);
    const ATTEMPTS: i64 = 4;
    for n in n..n + ATTEMPTS {
        let interval = match step {
            Step::Seconds(seconds) => {
                Interval { micros: seconds.checked_mul(n)?.checked_mul(SECOND)?, ..Interval::default() }
            }
            Step::Months(months) => Interval { months: months.checked_mul(n)?, ..Interval::default() },
        };
        let at = match zone.to_utc(&first.add_interval(&interval)?) {
            LocalToUtc::Exact(micros) | LocalToUtc::Gap(micros) => micros.div_euclid(SECOND),
            LocalToUtc::OutOfRange => return None,
        };
        if at >= earliest {
            return Some(at);
        }
    }
    // The local clock went back by more than the interval.
    match step {
        Step::Seconds(seconds) => Some(earliest + seconds),
        Step::Months(_) => None,
    }
}

fn months_of(time: &DateTime) -> i64 {
    i64::from(time.date.year) * 12 + i64::from(time.date.month)
}

#[cfg(test)]
mod tests {
    use cohort_expr::TimeZone as Zone;

    use super::*;

    fn every(count: u64, unit: IntervalUnit, starts: i64) -> EventSchedule {
        EventSchedule::Every { count, unit, starts: Some(starts), ends: None }
    }

    fn at(zone: &Zone, text: &str) -> i64 {
        let time = DateTime::parse(text.as_bytes(), cohort_types::SqlMode::NONE).value.expect("a time");
        match zone.to_utc(&time) {
            LocalToUtc::Exact(micros) => micros / SECOND,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn missed_runs_are_made_up_for_at_one_time_only() {
        let utc = Zone::Offset(0);
        let schedule = every(2, IntervalUnit::Second, 1000);
        assert_eq!(next_run(&schedule, &utc, None, 900), Some(1000));
        assert_eq!(next_run(&schedule, &utc, None, 1000), Some(1000));
        assert_eq!(next_run(&schedule, &utc, Some(1000), 1000), Some(1002));
        assert_eq!(next_run(&schedule, &utc, Some(1002), 1009), Some(1010));
        assert_eq!(next_run(&EventSchedule::At(1000), &utc, None, 5000), Some(1000));
        assert_eq!(next_run(&EventSchedule::At(1000), &utc, Some(5000), 5000), None);
        let ending = EventSchedule::Every {
            count: 2,
            unit: IntervalUnit::Second,
            starts: Some(1000),
            ends: Some(1003),
        };
        assert_eq!(next_run(&ending, &utc, Some(1000), 1001), Some(1002));
        assert_eq!(next_run(&ending, &utc, Some(1002), 1003), None);
    }

    #[test]
    fn a_daily_event_keeps_its_hour() {
        let zone = Zone::parse("Europe/Berlin").expect("known");
        let start = at(&zone, "2026-03-27 03:30:00");
        let schedule = every(1, IntervalUnit::Day, start);
        for (last, next) in [
            ("2026-03-27 03:30:00", "2026-03-28 03:30:00"),
            ("2026-03-28 03:30:00", "2026-03-29 03:30:00"),
            ("2026-10-24 03:30:00", "2026-10-25 03:30:00"),
            ("2026-10-25 03:30:00", "2026-10-26 03:30:00"),
        ] {
            let last = at(&zone, last);
            assert_eq!(next_run(&schedule, &zone, Some(last), last), Some(at(&zone, next)), "{next}");
        }
        // 02:30 does not exist on the day on which the clock goes forward by an hour. As in MariaDB, the
        // event runs at the moment of the change.
        let start = at(&zone, "2026-03-28 02:30:00");
        let schedule = every(1, IntervalUnit::Day, start);
        assert_eq!(next_run(&schedule, &zone, Some(start), start), Some(at(&zone, "2026-03-29 03:00:00")));
    }

    #[test]
    fn months_end_where_they_end() {
        let utc = Zone::Offset(0);
        let start = at(&utc, "2026-01-31 10:00:00");
        let schedule = every(1, IntervalUnit::Month, start);
        let mut last = start;
        for next in ["2026-02-28 10:00:00", "2026-03-31 10:00:00", "2026-04-30 10:00:00"] {
            let found = next_run(&schedule, &utc, Some(last), last).expect("runs again");
            assert_eq!(found, at(&utc, next));
            last = found;
        }
        let yearly = every(1, IntervalUnit::Year, at(&utc, "2024-02-29 00:00:00"));
        let now = at(&utc, "2026-06-01 00:00:00");
        assert_eq!(next_run(&yearly, &utc, None, now), Some(at(&utc, "2027-02-28 00:00:00")));
    }

    #[test]
    fn an_hour_that_comes_twice_ends() {
        let zone = Zone::parse("Europe/Berlin").expect("known");
        let schedule = every(1, IntervalUnit::Minute, at(&zone, "2026-10-25 01:00:00"));
        let (mut last, end) = (at(&zone, "2026-10-25 01:00:00"), at(&zone, "2026-10-25 05:00:00"));
        while last < end {
            let next = next_run(&schedule, &zone, Some(last), last + 1).expect("runs again");
            assert!(next > last && next <= last + 3700, "{last} {next}");
            last = next;
        }
    }
}
