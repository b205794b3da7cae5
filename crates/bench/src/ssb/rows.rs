//! Generator of the rows, as the text between the parentheses of VALUES.

use crate::random::Random;
use crate::tpch::Row;
use crate::tpch::dates::{Day, FIRST, LAST_ORDER};
use crate::tpch::words::{
    COLOURS, CONTAINER_1, CONTAINER_2, MODES, NATIONS, PRIORITIES, REGIONS, SEGMENTS, TYPE_1, TYPE_2, TYPE_3,
};

/// Number of days in the dates table: seven years, which contain all order and commit dates.
const DAYS: i32 = 2557;
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Calls `take` with each row of each table. Scale 1 has six million order lines.
pub fn rows_of<E>(scale: f64, mut take: impl FnMut(Row) -> Result<(), E>) -> Result<(), E> {
    let count = |full: f64| ((full * scale) as i64).max(10);
    // The specification has 200,000 parts at scale 1, and 200,000 more for each doubling of the scale.
    let parts = match scale < 1.0 {
        true => count(200_000.0),
        false => (200_000.0 * (1.0 + scale.log2())) as i64,
    };
    let sizes =
        Sizes { suppliers: count(2_000.0), parts, customers: count(30_000.0), orders: count(1_500_000.0) };
    let mut made = Made { random: Random::new(23), sizes };
    for n in 0..DAYS {
        take(Row { table: "dates", values: date(FIRST.after(n)) })?;
    }
    for n in 1..=sizes.suppliers {
        take(Row { table: "supplier", values: made.supplier(n) })?;
    }
    for n in 1..=sizes.customers {
        take(Row { table: "customer", values: made.customer(n) })?;
    }
    for n in 1..=sizes.parts {
        take(Row { table: "part", values: made.part(n) })?;
    }
    for n in 1..=sizes.orders {
        for values in made.order(n) {
            take(Row { table: "lineorder", values })?;
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Sizes {
    suppliers: i64,
    parts: i64,
    customers: i64,
    orders: i64,
}

struct Made {
    random: Random,
    sizes: Sizes,
}

/// Returns the key of a date: its digits.
fn key(day: Day) -> i32 {
    let (year, month, day) = day.civil();
    year * 10_000 + month * 100 + day
}

fn date(day: Day) -> String {
    let (year, month, of_month) = day.civil();
    let of_year = (1..).find(|n| day.after(-n).civil().0 < year).expect("a year has a first day");
    let name = MONTHS[month as usize - 1];
    // 1970-01-01 was a Thursday.
    let weekday = (day.0 + 4) % 7;
    let season = match month {
        11 | 12 => "Christmas",
        1 | 2 => "Winter",
        3..=5 => "Spring",
        6..=8 => "Summer",
        _ => "Fall",
    };
    let is_last = i32::from(day.after(1).civil().1 != month);
    format!(
        "{},'{day}','{}','{name}',{year},{},'{}{year}',{},{of_month},{of_year},{month},{},'{season}',{is_last},{}",
        key(day),
        WEEKDAYS[weekday as usize],
        year * 100 + month,
        &name[..3],
        weekday + 1,
        (of_year - 1) / 7 + 1,
        i32::from((1..=5).contains(&weekday))
    )
}

impl Made {
    fn between(&mut self, low: i64, high: i64) -> i64 {
        low - 1 + i64::from(self.random.one_to((high - low + 1) as u32))
    }

    fn one_of(&mut self, words: &[&'static str]) -> &'static str {
        words[self.between(0, words.len() as i64 - 1) as usize]
    }

    /// Returns address, city, nation, region and telephone number, separated by commas.
    fn place(&mut self) -> String {
        let number = self.between(0, 24);
        let (nation, region) = NATIONS[number as usize];
        let mut letter = || (b'a' + self.between(0, 25) as u8) as char;
        let address: String = (0..15).map(|_| letter()).collect();
        // A city consists of nine letters of its nation and a digit.
        let city = format!("{nation:<9.9}{}", self.between(0, 9));
        let (a, b, c) = (self.between(100, 999), self.between(100, 999), self.between(1000, 9999));
        let region = REGIONS[region as usize];
        format!("'{address}','{city}','{nation}','{region}','{}-{a}-{b}-{c}'", number + 10)
    }

    fn supplier(&mut self, n: i64) -> String {
        format!("{n},'Supplier#{n:09}',{}", self.place())
    }

    fn customer(&mut self, n: i64) -> String {
        let (place, segment) = (self.place(), self.one_of(&SEGMENTS));
        format!("{n},'Customer#{n:09}',{place},'{segment}'")
    }

    fn part(&mut self, n: i64) -> String {
        let (colour, other) = (self.one_of(&COLOURS), self.one_of(&COLOURS));
        let (maker, category, brand) = (self.between(1, 5), self.between(1, 5), self.between(1, 40));
        let kind = [self.one_of(&TYPE_1), self.one_of(&TYPE_2), self.one_of(&TYPE_3)].join(" ");
        let size = self.between(1, 50);
        let container = [self.one_of(&CONTAINER_1), self.one_of(&CONTAINER_2)].join(" ");
        format!(
            "{n},'{colour} {other}','MFGR#{maker}','MFGR#{maker}{category}','MFGR#{maker}{category}{brand}','{colour}',\
             '{kind}',{size},'{container}'"
        )
    }

    /// Returns the lines of an order.
    fn order(&mut self, n: i64) -> Vec<String> {
        // Keys are sparse: the first 8 of each 32 numbers are used.
        let order = n / 8 * 32 + n % 8 + 1;
        let customer = self.between(1, self.sizes.customers);
        let ordered = FIRST.after(self.between(0, i64::from(LAST_ORDER.0 - FIRST.0)) as i32);
        let priority = self.one_of(&PRIORITIES);
        let mut total = 0;
        let mut lines = Vec::new();
        for line in 1..=self.between(1, 7) {
            let (part, supplier) = (self.between(1, self.sizes.parts), self.between(1, self.sizes.suppliers));
            let (quantity, discount, tax) = (self.between(1, 50), self.between(0, 10), self.between(0, 8));
            let retail = 90_000 + part / 10 % 20_001 + 100 * (part % 1000);
            let price = quantity * retail;
            let revenue = price * (100 - discount) / 100;
            total += revenue * (100 + tax) / 100;
            let committed = key(ordered.after(self.between(30, 90) as i32));
            let mode = self.one_of(&MODES);
            lines.push((
                format!(
                    "{order},{line},{customer},{part},{supplier},{},'{priority}','0',{quantity},{price}",
                    key(ordered)
                ),
                format!("{discount},{revenue},{},{tax},{committed},'{mode}'", 6 * retail / 10),
            ));
        }
        lines.into_iter().map(|(head, tail)| format!("{head},{total},{tail}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::convert::Infallible;

    #[test]
    fn tables_have_the_sizes_of_the_scale() {
        let mut found: HashMap<&str, usize> = HashMap::new();
        let Ok(()) = rows_of(0.001, |row| {
            *found.entry(row.table).or_default() += 1;
            Ok::<(), Infallible>(())
        });
        let sizes = ["dates", "supplier", "customer", "part"].map(|table| found[table]);
        assert_eq!(sizes, [2557, 10, 30, 200]);
        assert!((5500..6500).contains(&found["lineorder"]), "{found:?}");
    }

    #[test]
    fn days_are_described() {
        assert_eq!(
            date(FIRST.after(59)),
            "19920229,'1992-02-29','Saturday','February',1992,199202,'Feb1992',7,29,60,2,9,'Winter',1,0"
        );
    }
}
