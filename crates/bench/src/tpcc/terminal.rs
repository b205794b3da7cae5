//! A terminal: chooses transactions and their input as clauses 2.4 to 2.8 of the standard require, and runs
//! them.

use std::os::fd::{AsFd, BorrowedFd};

use crate::connection::{Address, ConnectionError, Rows};
use crate::driver::is_retryable;
use crate::random::Random;
use crate::tpcc::line::Line;
use crate::tpcc::{CUSTOMERS, DISTRICTS, ITEMS};

const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
/// An item that does not exist: a new order that contains it is rolled back.
const MISSING_ITEM: u32 = ITEMS + 1;

/// Returns the last name with this number, of a thousand.
pub fn last_name(number: u32) -> String {
    [number / 100 % 10, number / 10 % 10, number % 10].map(|at| SYLLABLES[at as usize]).concat()
}

/// Result of one transaction.
#[derive(Default)]
pub struct Done {
    pub is_new_order: bool,
    pub retries: u64,
}

pub struct Terminal {
    line: Line,
    random: Random,
    warehouses: u32,
}

/// The customer of a transaction, by id or last name.
enum Customer {
    Id(u32),
    Name(String),
}

struct Item {
    item: u32,
    warehouse: u32,
    quantity: u32,
}

/// A transaction with its input. Retries use the same input.
enum Transaction {
    NewOrder { d: u32, c: u32, lines: Vec<Item> },
    Payment { d: u32, c_w: u32, c_d: u32, customer: Customer, amount: f64 },
    OrderStatus { d: u32, customer: Customer },
    Delivery { carrier: u32 },
    StockLevel { d: u32, threshold: u32 },
}

impl AsFd for Terminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }
}

fn number(rows: &Rows, column: usize) -> Result<i64, ConnectionError> {
    let value = rows.first().and_then(|row| row[column].as_deref()?.parse().ok());
    value.ok_or(ConnectionError::Protocol("a row with a number was expected"))
}

impl Terminal {
    pub fn open(
        address: &Address,
        schema: &str,
        seed: u64,
        warehouses: u32,
    ) -> Result<Terminal, ConnectionError> {
        let line = Line::open(address, schema)?;
        Ok(Terminal { line, random: Random::new(seed * 31), warehouses })
    }

    /// Runs one transaction, including its retries.
    pub async fn next(&mut self) -> Result<Done, ConnectionError> {
        let w = self.random.one_to(self.warehouses);
        let transaction = self.draw(w);
        let mut done = Done { is_new_order: matches!(transaction, Transaction::NewOrder { .. }), retries: 0 };
        loop {
            match self.attempt(w, &transaction).await {
                Err(ConnectionError::Server(error)) if is_retryable(&error.code) => {
                    done.retries += 1;
                    self.line.query("ROLLBACK").await?;
                }
                other => return other.map(|()| done),
            }
        }
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

    async fn ask(&mut self, sql: String) -> Result<Rows, ConnectionError> {
        self.line.query(&sql).await
    }

    async fn attempt(&mut self, w: u32, transaction: &Transaction) -> Result<(), ConnectionError> {
        self.line.query("BEGIN").await?;
        match transaction {
            Transaction::NewOrder { d, c, lines } => {
                if !self.new_order(w, *d, *c, lines).await? {
                    return self.line.query("ROLLBACK").await.map(drop);
                }
            }
            Transaction::Payment { d, c_w, c_d, customer, amount } => {
                self.payment(w, *d, *c_w, *c_d, customer, *amount).await?;
            }
            Transaction::OrderStatus { d, customer } => self.order_status(w, *d, customer).await?,
            Transaction::Delivery { carrier } => self.delivery(w, *carrier).await?,
            Transaction::StockLevel { d, threshold } => self.stock_level(w, *d, *threshold).await?,
        }
        self.line.query("COMMIT").await.map(drop)
    }

    /// Returns whether all items exist.
    async fn new_order(&mut self, w: u32, d: u32, c: u32, lines: &[Item]) -> Result<bool, ConnectionError> {
        self.ask(format!(
            "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse WHERE w_id = {w} \
             AND c_w_id = w_id AND c_d_id = {d} AND c_id = {c}"
        ))
        .await?;
        let district = self
            .ask(format!(
                "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = {w} AND d_id = {d} FOR UPDATE"
            ))
            .await?;
        let o = number(&district, 0)?;
        self.ask(format!(
            "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = {w} AND d_id = {d}"
        ))
        .await?;
        let is_local = lines.iter().all(|line| line.warehouse == w);
        self.ask(format!(
            "INSERT INTO orders VALUES ({o},{d},{w},{c},NOW(),NULL,{},{})",
            lines.len(),
            u8::from(is_local)
        ))
        .await?;
        self.ask(format!("INSERT INTO new_orders VALUES ({o},{d},{w})")).await?;
        for (at, Item { item, warehouse, quantity }) in (1..).zip(lines) {
            let found =
                self.ask(format!("SELECT i_price, i_name, i_data FROM item WHERE i_id = {item}")).await?;
            let Some(price) = found.first().and_then(|row| row[0].as_deref()?.parse::<f64>().ok()) else {
                return Ok(false);
            };
            let stock = self
                .ask(format!(
                    "SELECT s_quantity, s_data, s_dist_{d:02} FROM stock WHERE s_i_id = {item} \
                 AND s_w_id = {warehouse} FOR UPDATE"
                ))
                .await?;
            let (left, wanted) = (number(&stock, 0)?, i64::from(*quantity));
            let left = if left - wanted >= 10 { left - wanted } else { left - wanted + 91 };
            self.ask(format!(
                "UPDATE stock SET s_quantity = {left}, s_ytd = s_ytd + {quantity}, \
                 s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + {} \
                 WHERE s_i_id = {item} AND s_w_id = {warehouse}",
                u8::from(*warehouse != w)
            ))
            .await?;
            let info = stock[0][2].clone().unwrap_or_default();
            self.ask(format!(
                "INSERT INTO order_line VALUES ({o},{d},{w},{at},{item},{warehouse},NULL,{quantity},{:.2},\
                 '{info}')",
                price * f64::from(*quantity)
            ))
            .await?;
        }
        Ok(true)
    }

    /// Returns the id of a customer: for a name, the middle one of those with this name.
    async fn find(&mut self, w: u32, d: u32, customer: &Customer) -> Result<i64, ConnectionError> {
        match customer {
            Customer::Id(id) => Ok(i64::from(*id)),
            Customer::Name(name) => {
                let found = self
                    .ask(format!(
                        "SELECT c_id FROM customer WHERE c_w_id = {w} AND c_d_id = {d} AND c_last = '{name}' \
                     ORDER BY c_first"
                    ))
                    .await?;
                let middle = found.len().saturating_sub(1) / 2;
                number(&found[middle.min(found.len())..].to_vec(), 0)
            }
        }
    }

    async fn payment(
        &mut self,
        w: u32,
        d: u32,
        c_w: u32,
        c_d: u32,
        customer: &Customer,
        amount: f64,
    ) -> Result<(), ConnectionError> {
        self.ask(format!("UPDATE warehouse SET w_ytd = w_ytd + {amount:.2} WHERE w_id = {w}")).await?;
        let warehouse = self.ask(format!(
            "SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM warehouse WHERE w_id = {w}"
        )).await?;
        self.ask(format!(
            "UPDATE district SET d_ytd = d_ytd + {amount:.2} WHERE d_w_id = {w} AND d_id = {d}"
        ))
        .await?;
        let district = self
            .ask(format!(
                "SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM district \
             WHERE d_w_id = {w} AND d_id = {d}"
            ))
            .await?;
        let c = self.find(c_w, c_d, customer).await?;
        let key = format!("c_w_id = {c_w} AND c_d_id = {c_d} AND c_id = {c}");
        let row = self
            .ask(format!(
                "SELECT c_first, c_middle, c_last, c_street_1, c_city, c_phone, c_credit, c_credit_lim, \
             c_discount, c_balance, c_since, c_data FROM customer WHERE {key} FOR UPDATE"
            ))
            .await?;
        let data = match row.first() {
            Some(row) if row[6].as_deref() == Some("BC") => {
                let old = row[11].as_deref().unwrap_or_default();
                let mut new = format!("| {c} {c_d} {c_w} {d} {w} {amount:.2} {old}");
                new.truncate(500);
                format!(", c_data = '{new}'")
            }
            _ => String::new(),
        };
        self.ask(format!(
            "UPDATE customer SET c_balance = c_balance - {amount:.2}, \
             c_ytd_payment = c_ytd_payment + {amount:.2}, c_payment_cnt = c_payment_cnt + 1{data} WHERE {key}"
        ))
        .await?;
        let name = |rows: &Rows| rows.first().and_then(|row| row[5].clone()).unwrap_or_default();
        self.ask(format!(
            "INSERT INTO history VALUES ({c},{c_d},{c_w},{d},{w},NOW(),{amount:.2},'{}    {}')",
            name(&warehouse),
            name(&district)
        ))
        .await?;
        Ok(())
    }

    async fn order_status(&mut self, w: u32, d: u32, customer: &Customer) -> Result<(), ConnectionError> {
        let c = self.find(w, d, customer).await?;
        self.ask(format!(
            "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = {w} AND c_d_id = {d} \
             AND c_id = {c}"
        ))
        .await?;
        let order = self
            .ask(format!(
                "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = {w} AND o_d_id = {d} \
             AND o_c_id = {c} ORDER BY o_id DESC LIMIT 1"
            ))
            .await?;
        let o = number(&order, 0)?;
        self.ask(format!(
            "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
             WHERE ol_w_id = {w} AND ol_d_id = {d} AND ol_o_id = {o}"
        ))
        .await?;
        Ok(())
    }

    async fn delivery(&mut self, w: u32, carrier: u32) -> Result<(), ConnectionError> {
        for d in 1..=DISTRICTS {
            let oldest = self
                .ask(format!(
                    "SELECT no_o_id FROM new_orders WHERE no_w_id = {w} AND no_d_id = {d} ORDER BY no_o_id \
                 LIMIT 1 FOR UPDATE"
                ))
                .await?;
            if oldest.is_empty() {
                continue;
            }
            let o = number(&oldest, 0)?;
            let key = format!("o_w_id = {w} AND o_d_id = {d} AND o_id = {o}");
            self.ask(format!(
                "DELETE FROM new_orders WHERE no_w_id = {w} AND no_d_id = {d} AND no_o_id = {o}"
            ))
            .await?;
            let customer = self.ask(format!("SELECT o_c_id FROM orders WHERE {key}")).await?;
            let c = number(&customer, 0)?;
            self.ask(format!("UPDATE orders SET o_carrier_id = {carrier} WHERE {key}")).await?;
            let lines = format!("ol_w_id = {w} AND ol_d_id = {d} AND ol_o_id = {o}");
            self.ask(format!("UPDATE order_line SET ol_delivery_d = NOW() WHERE {lines}")).await?;
            let sum = self.ask(format!("SELECT SUM(ol_amount) FROM order_line WHERE {lines}")).await?;
            let sum = sum.first().and_then(|row| row[0].clone()).unwrap_or_else(|| "0".to_owned());
            self.ask(format!(
                "UPDATE customer SET c_balance = c_balance + {sum}, c_delivery_cnt = c_delivery_cnt + 1 \
                 WHERE c_w_id = {w} AND c_d_id = {d} AND c_id = {c}"
            ))
            .await?;
        }
        Ok(())
    }

    async fn stock_level(&mut self, w: u32, d: u32, threshold: u32) -> Result<(), ConnectionError> {
        let district =
            self.ask(format!("SELECT d_next_o_id FROM district WHERE d_w_id = {w} AND d_id = {d}")).await?;
        let next = number(&district, 0)?;
        self.ask(format!(
            "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = {w} AND ol_d_id = {d} \
             AND ol_o_id < {next} AND ol_o_id >= {} AND s_w_id = {w} AND s_i_id = ol_i_id \
             AND s_quantity < {threshold}",
            next - 20
        ))
        .await?;
        Ok(())
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
