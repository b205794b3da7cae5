//! Generator of the rows, as the text between the parentheses of VALUES.

use crate::random::Random;
use crate::tpch::dates::{CURRENT, Day, FIRST, LAST_ORDER};
use crate::tpch::words::{
    COLOURS, CONTAINER_1, CONTAINER_2, INSTRUCTIONS, MODES, NATIONS, PRIORITIES, REGIONS, SEGMENTS, TEXT,
    TYPE_1, TYPE_2, TYPE_3,
};

/// A row of one table.
pub struct Row {
    pub table: &'static str,
    pub values: String,
}

/// Calls `take` with each row of each table. Scale 1 has six million line items.
pub fn rows_of<E>(scale: f64, mut take: impl FnMut(Row) -> Result<(), E>) -> Result<(), E> {
    let count = |full: f64| ((full * scale) as i64).max(10);
    let sizes = Sizes {
        suppliers: count(10_000.0),
        parts: count(200_000.0),
        customers: count(150_000.0),
        orders: count(1_500_000.0),
    };
    let mut made = Made { random: Random::new(19), sizes };
    for (n, name) in REGIONS.iter().enumerate() {
        let values = format!("{n},'{name}','{}'", made.text(4));
        take(Row { table: "region", values })?;
    }
    for (n, (name, region)) in NATIONS.iter().enumerate() {
        let values = format!("{n},'{name}',{region},'{}'", made.text(6));
        take(Row { table: "nation", values })?;
    }
    for n in 1..=sizes.suppliers {
        take(Row { table: "supplier", values: made.supplier(n) })?;
    }
    for n in 1..=sizes.parts {
        take(Row { table: "part", values: made.part(n) })?;
        for place in 0..4 {
            take(Row { table: "partsupp", values: made.partsupp(n, place) })?;
        }
    }
    for n in 1..=sizes.customers {
        take(Row { table: "customer", values: made.customer(n) })?;
    }
    for n in 0..sizes.orders {
        let (order, items) = made.order(n);
        take(Row { table: "orders", values: order })?;
        for values in items {
            take(Row { table: "lineitem", values })?;
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

impl Made {
    fn between(&mut self, low: i64, high: i64) -> i64 {
        low - 1 + i64::from(self.random.one_to((high - low + 1) as u32))
    }

    fn one_of(&mut self, words: &[&'static str]) -> &'static str {
        words[self.between(0, words.len() as i64 - 1) as usize]
    }

    fn text(&mut self, words: usize) -> String {
        let all: Vec<&str> = (0..words).map(|_| self.one_of(&TEXT)).collect();
        all.join(" ")
    }

    fn phone(&mut self, nation: i64) -> String {
        let (a, b, c) = (self.between(100, 999), self.between(100, 999), self.between(1000, 9999));
        format!("{}-{a}-{b}-{c}", nation + 10)
    }

    fn address(&mut self) -> String {
        let mut letter = || (b'a' + self.between(0, 25) as u8) as char;
        (0..20).map(|_| letter()).collect()
    }

    fn supplier(&mut self, n: i64) -> String {
        let nation = self.between(0, 24);
        let (address, phone, balance) =
            (self.address(), self.phone(nation), cents(self.between(-99_999, 999_999)));
        // Five of ten thousand suppliers have complaints, and five have recommendations.
        let comment = match self.between(1, 10_000) {
            1..=5 => format!("Customer {} Complaints", self.text(2)),
            6..=10 => format!("Customer {} Recommends", self.text(2)),
            _ => self.text(7),
        };
        format!("{n},'Supplier#{n:09}','{address}',{nation},'{phone}',{balance},'{comment}'")
    }

    fn part(&mut self, n: i64) -> String {
        let name: Vec<&str> = (0..5).map(|_| self.one_of(&COLOURS)).collect();
        let maker = self.between(1, 5);
        let brand = maker * 10 + self.between(1, 5);
        let kind = [self.one_of(&TYPE_1), self.one_of(&TYPE_2), self.one_of(&TYPE_3)].join(" ");
        let size = self.between(1, 50);
        let container = [self.one_of(&CONTAINER_1), self.one_of(&CONTAINER_2)].join(" ");
        let (price, comment) = (cents(retail_price(n)), self.text(1));
        let name = name.join(" ");
        format!(
            "{n},'{name}','Manufacturer#{maker}','Brand#{brand}','{kind}',{size},'{container}',{price},\
             '{comment}'"
        )
    }

    /// Returns the supplier number `place` (0 to 3) of a part.
    fn supplier_of(&self, part: i64, place: i64) -> i64 {
        let all = self.sizes.suppliers;
        (part + place * (all / 4 + (part - 1) / all)) % all + 1
    }

    fn partsupp(&mut self, part: i64, place: i64) -> String {
        let supplier = self.supplier_of(part, place);
        let (quantity, cost, comment) =
            (self.between(1, 9999), cents(self.between(100, 100_000)), self.text(12));
        format!("{part},{supplier},{quantity},{cost},'{comment}'")
    }

    fn customer(&mut self, n: i64) -> String {
        let nation = self.between(0, 24);
        let (address, phone, balance) =
            (self.address(), self.phone(nation), cents(self.between(-99_999, 999_999)));
        let (segment, comment) = (self.one_of(&SEGMENTS), self.text(8));
        format!("{n},'Customer#{n:09}','{address}',{nation},'{phone}',{balance},'{segment}','{comment}'")
    }

    /// Returns an order and its items.
    fn order(&mut self, n: i64) -> (String, Vec<String>) {
        // Keys are sparse: the first 8 of each 32 numbers are used.
        let key = n / 8 * 32 + n % 8 + 1;
        // A third of the customers have no orders.
        let customer = (self.between(1, self.sizes.customers / 3) - 1) * 3 + self.between(1, 2);
        let date = FIRST.after(self.between(0, i64::from(LAST_ORDER.0 - FIRST.0)) as i32);
        let (mut total, mut open) = (0, 0);
        let count = self.between(1, 7);
        let mut items = Vec::new();
        for line in 1..=count {
            let (item, price, is_open) = self.item(key, line, date);
            items.push(item);
            total += price;
            open += i64::from(is_open);
        }
        let status = match open {
            0 => 'F',
            n if n == count => 'O',
            _ => 'P',
        };
        let (priority, clerk) = (self.one_of(&PRIORITIES), self.between(1, 1000));
        let (total, comment) = (cents(total), self.text(6));
        let order = format!(
            "{key},{customer},'{status}',{total},'{date}','{priority}','Clerk#{clerk:09}',0,'{comment}'"
        );
        (order, items)
    }

    /// Returns a line item, its price, and whether it was not shipped yet.
    fn item(&mut self, order: i64, line: i64, ordered: Day) -> (String, i64, bool) {
        let part = self.between(1, self.sizes.parts);
        let place = self.between(0, 3);
        let supplier = self.supplier_of(part, place);
        let quantity = self.between(1, 50);
        let price = quantity * retail_price(part);
        let (discount, tax) = (self.between(0, 10), self.between(0, 8));
        let shipped = ordered.after(self.between(1, 121) as i32);
        let committed = ordered.after(self.between(30, 90) as i32);
        let received = shipped.after(self.between(1, 30) as i32);
        let flag = if received <= CURRENT { self.one_of(&["R", "A"]) } else { "N" };
        let is_open = shipped > CURRENT;
        let status = if is_open { 'O' } else { 'F' };
        let (instruction, mode) = (self.one_of(&INSTRUCTIONS), self.one_of(&MODES));
        let comment = self.text(3);
        let written = format!(
            "{order},{part},{supplier},{line},{quantity},{},0.{discount:02},0.{tax:02},'{flag}','{status}',\
             '{shipped}','{committed}','{received}','{instruction}','{mode}','{comment}'",
            cents(price)
        );
        (written, price * (100 - discount) * (100 + tax) / 10_000, is_open)
    }
}

/// Returns the retail price in cents.
fn retail_price(part: i64) -> i64 {
    90_000 + part / 10 % 20_001 + 100 * (part % 1000)
}

fn cents(n: i64) -> String {
    let sign = if n < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", n.abs() / 100, n.abs() % 100)
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
        let sizes = ["region", "nation", "supplier", "part", "partsupp", "customer", "orders"]
            .map(|table| found[table]);
        assert_eq!(sizes, [5, 25, 10, 200, 800, 150, 1500]);
        assert!((5500..6500).contains(&found["lineitem"]), "{found:?}");
    }

    #[test]
    fn amounts_have_two_digits() {
        assert_eq!([cents(-5), cents(100), cents(-12_345)], ["-0.05", "1.00", "-123.45"]);
    }
}
