//! Inputs of the transactions: drawn as clauses 2.4 to 2.8 of the standard require.

use crate::random::Random;
use crate::tpcc::{CUSTOMERS, DISTRICTS, ITEMS};

const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
/// An item that does not exist: a new order that contains it is rolled back.
const MISSING_ITEM: u32 = ITEMS + 1;

/// Returns the last name with this number, of a thousand.
pub fn last_name(number: u32) -> String {
    [number / 100 % 10, number / 10 % 10, number % 10].map(|at| SYLLABLES[at as usize]).concat()
}

/// The customer of a transaction, by id or last name.
pub enum Customer {
    Id(u32),
    Name(String),
}

pub struct Item {
    pub item: u32,
    pub warehouse: u32,
    pub quantity: u32,
}

/// A transaction with its input. Retries use the same input.
pub enum Transaction {
    NewOrder { d: u32, c: u32, lines: Vec<Item> },
    Payment { d: u32, c_w: u32, c_d: u32, customer: Customer, amount: f64 },
    OrderStatus { d: u32, customer: Customer },
    Delivery { carrier: u32 },
    StockLevel { d: u32, threshold: u32 },
}

/// A source of inputs, one for each terminal.
pub struct Inputs {
    random: Random,
    warehouses: u32,
}

impl Inputs {
    pub fn new(seed: u64, warehouses: u32) -> Inputs {
        Inputs { random: Random::new(seed * 31), warehouses }
    }

    /// Draws the next transaction and its warehouse.
    pub fn next(&mut self) -> (u32, Transaction) {
        let w = self.random.one_to(self.warehouses);
        (w, self.draw(w))
    }

    fn draw(&mut self, w: u32) -> Transaction {
        let d = self.random.one_to(DISTRICTS);
        match self.random.one_to(100) {
            1..=45 => Transaction::NewOrder { d, c: self.customer_id(), lines: self.lines(w) },
            46..=88 => {
                let is_remote = self.warehouses > 1 && self.random.one_to(100) > 85;
                let (c_w, c_d) = match is_remote {
                    true => (self.other_warehouse(w), self.random.one_to(DISTRICTS)),
                    false => (w, d),
                };
                let amount = f64::from(99 + self.random.one_to(499_901)) / 100.0;
                Transaction::Payment { d, c_w, c_d, customer: self.customer(), amount }
            }
            89..=92 => Transaction::OrderStatus { d, customer: self.customer() },
            93..=96 => Transaction::Delivery { carrier: self.random.one_to(10) },
            _ => Transaction::StockLevel { d, threshold: 9 + self.random.one_to(11) },
        }
    }

    fn lines(&mut self, w: u32) -> Vec<Item> {
        let count = 4 + self.random.one_to(11);
        let is_wrong = self.random.one_to(100) == 1;
        let mut lines: Vec<Item> = (1..=count)
            .map(|line| Item {
                item: match is_wrong && line == count {
                    true => MISSING_ITEM,
                    false => self.random.non_uniform(8191, 1, ITEMS),
                },
                warehouse: match self.warehouses > 1 && self.random.one_to(100) == 1 {
                    true => self.other_warehouse(w),
                    false => w,
                },
                quantity: self.random.one_to(10),
            })
            .collect();
        // All terminals use the same order, to avoid deadlocks.
        lines.sort_by_key(|line| (line.warehouse, line.item));
        lines
    }

    fn other_warehouse(&mut self, w: u32) -> u32 {
        let other = self.random.one_to(self.warehouses - 1);
        if other >= w { other + 1 } else { other }
    }

    fn customer_id(&mut self) -> u32 {
        self.random.non_uniform(1023, 1, CUSTOMERS)
    }

    fn customer(&mut self) -> Customer {
        match self.random.one_to(100) {
            1..=60 => Customer::Name(last_name(self.random.non_uniform(255, 0, 999))),
            _ => Customer::Id(self.customer_id()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_three_syllables() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
    }
}
