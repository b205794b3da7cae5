//! Figures of the history as JSON.

use std::collections::HashMap;

use cohort_observe::{History, Slot, TIERS, TopStatement};
use serde_json::{Map, Value, json};

/// Returns the slots of a tier after the slot `after`, with the series whose names are listed. Each series is
/// a list parallel to `begin`; that of a counter has rates per second.
pub(crate) fn history(history: &History, tier: usize, after: u64, names: &[&str]) -> Value {
    let extract = history.read(tier, after, Slot::clone);
    let schema = history.schema();
    let mut series = Map::new();
    for name in names {
        let place = |all: &[&str]| all.iter().position(|known| known == name);
        let each = |value: &dyn Fn(&Slot) -> Value| extract.slots.iter().map(value).collect::<Value>();
        if let Some(n) = place(&schema.counters) {
            let rate = |slot: &Slot| rounded(slot.counters[n] as f64 / slot.seconds().max(1e-9));
            series.insert((*name).to_owned(), each(&rate));
        } else if let Some(n) = place(&schema.gauges) {
            series.insert((*name).to_owned(), each(&|slot| slot.gauges[n].last.into()));
            series.insert(format!("{name}:max"), each(&|slot| slot.gauges[n].max.into()));
        } else if let Some(n) = place(&schema.histograms) {
            for (suffix, share) in [("p50", 0.5), ("p99", 0.99)] {
                let at = |slot: &Slot| slot.histograms[n].percentile(share).map_or(Value::Null, rounded);
                series.insert(format!("{name}:{suffix}"), each(&at));
            }
            let rate = |slot: &Slot| rounded(slot.histograms[n].count() as f64 / slot.seconds().max(1e-9));
            series.insert(format!("{name}:rate"), each(&rate));
        }
    }
    let ms = |us: u64| us / 1000;
    let begins: Vec<u64> = extract.slots.iter().map(|slot| ms(slot.begin_us)).collect();
    let ends: Vec<u64> = extract.slots.iter().map(|slot| ms(slot.end_us())).collect();
    let seconds = TIERS.get(tier).map_or(0, |tier| tier.ticks);
    json!({ "tier": tier, "seconds": seconds, "last": extract.last, "begin": begins, "end": ends, "series": series })
}

/// Keeps four significant digits, which is more than a chart shows.
fn rounded(value: f64) -> Value {
    if value == 0.0 || !value.is_finite() {
        return 0.into();
    }
    let scale = 10_f64.powi(3 - value.abs().log10().floor() as i32);
    json!((value * scale).round() / scale)
}

/// Returns the statements that took most time in the last minutes, at most `limit`.
pub(crate) fn top(history: &History, minutes: u64, limit: usize) -> Vec<TopStatement> {
    let last = TIERS.len() - 1;
    let newest = history.read(last, u64::MAX, |_| ()).last;
    let mut sums: HashMap<u128, TopStatement> = HashMap::new();
    for slot in history.read(last, newest.saturating_sub(minutes), |slot| slot.top.clone()).slots {
        for top in slot {
            let sum =
                sums.entry(top.digest).or_insert(TopStatement { digest: top.digest, ..Default::default() });
            sum.calls += top.calls;
            sum.errors += top.errors;
            sum.latency_us += top.latency_us;
            sum.rows_examined += top.rows_examined;
        }
    }
    let mut all: Vec<TopStatement> = sums.into_values().collect();
    all.sort_by_key(|top| (std::cmp::Reverse(top.latency_us), top.digest));
    all.truncate(limit);
    all
}

#[cfg(test)]
mod tests {
    use cohort_observe::{BINS, Reading, Schema, bin_of};

    use super::*;

    #[test]
    fn series_are_rates_levels_and_percentiles() {
        let own = History::new(Schema { counters: vec!["c"], gauges: vec!["g"], histograms: vec!["h"] });
        for second in 0..=120_u64 {
            let mut bins = vec![0; BINS];
            bins[bin_of(1000)] = 10 * second;
            let reading = Reading {
                wall_us: 1_700_000_000_000_000 + second * 1_000_000,
                monotonic_ns: second * 1_000_000_000,
                counters: vec![second * 12_345],
                gauges: vec![second],
                histograms: vec![bins],
            };
            let of = |latency_us| TopStatement {
                digest: u128::from(latency_us),
                calls: 2,
                latency_us,
                ..Default::default()
            };
            own.tick(reading, || vec![of(7), of(second)]);
        }
        let found = history(&own, 1, 10, &["c", "g", "h", "unknown"]);
        assert_eq!((found["last"].as_u64(), found["seconds"].as_u64()), (Some(12), Some(10)));
        assert_eq!(found["begin"], json!([1_700_000_100_000_u64, 1_700_000_110_000_u64]));
        let series = &found["series"];
        assert_eq!(series["c"], json!([12350.0, 12350.0]));
        assert_eq!((&series["g"], &series["g:max"]), (&json!([110, 120]), &json!([110, 120])));
        assert_eq!(series["h:rate"], json!([10.0, 10.0]));
        assert!((900.0..1200.0).contains(&series["h:p99"][0].as_f64().expect("a number")));
        assert!(series.get("unknown").is_none());
        let brief =
            |minutes| -> Vec<_> { top(&own, minutes, 2).iter().map(|top| (top.digest, top.calls)).collect() };
        assert_eq!(brief(1), [(120, 2), (7, 2)]);
        assert_eq!(brief(60), [(120, 2), (60, 2)]);
    }

    #[test]
    fn numbers_are_short() {
        for (value, expected) in
            [(0.0, "0"), (1234.567, "1235.0"), (0.001_234_56, "0.001235"), (1e9, "1000000000.0")]
        {
            assert_eq!(rounded(value).to_string(), expected);
        }
    }
}
