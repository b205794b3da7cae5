//! A terminal: chooses transactions and their input as clauses 2.4 to 2.8 of the standard require, and runs
//! them.

use std::os::fd::{AsFd, BorrowedFd};

use crate::connection::{Address, ConnectionError, Rows};
use crate::driver::is_retryable;
use crate::tpcc::DISTRICTS;
use crate::tpcc::inputs::{Customer, Inputs, Item, Transaction};
use crate::tpcc::line::Line;
use crate::tpcc::outcome::Done;

pub struct Terminal {
    line: Line,
    inputs: Inputs,
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
        Ok(Terminal { line, inputs: Inputs::new(seed, warehouses) })
    }

    /// Runs one transaction, including its retries.
    pub async fn next(&mut self) -> Result<Done, ConnectionError> {
        let (w, transaction) = self.inputs.next();
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
