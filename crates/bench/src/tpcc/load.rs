//! The nine tables and their initial contents.

use crate::connection::{Connection, ConnectionError};
use crate::dialect::Dialect;
use crate::random::Random;
use crate::tpcc::inputs::last_name;
use crate::tpcc::{CUSTOMERS, DISTRICTS, ITEMS};

/// Size of one INSERT.
const INSERT_BYTES: usize = 128 << 10;
/// Number of delivered orders among the initial orders of a district: they are the first ones.
const DELIVERED: u32 = 2100;

const TABLES: &[&str] = &[
    "CREATE TABLE warehouse (w_id SMALLINT NOT NULL, w_name VARCHAR(10), w_street_1 VARCHAR(20), \
     w_street_2 VARCHAR(20), w_city VARCHAR(20), w_state CHAR(2), w_zip CHAR(9), w_tax DECIMAL(4,4), \
     w_ytd DECIMAL(12,2), PRIMARY KEY (w_id))",
    "CREATE TABLE district (d_id TINYINT NOT NULL, d_w_id SMALLINT NOT NULL, d_name VARCHAR(10), \
     d_street_1 VARCHAR(20), d_street_2 VARCHAR(20), d_city VARCHAR(20), d_state CHAR(2), d_zip CHAR(9), \
     d_tax DECIMAL(4,4), d_ytd DECIMAL(12,2), d_next_o_id INT, PRIMARY KEY (d_w_id, d_id))",
    "CREATE TABLE customer (c_id INT NOT NULL, c_d_id TINYINT NOT NULL, c_w_id SMALLINT NOT NULL, \
     c_first VARCHAR(16), c_middle CHAR(2), c_last VARCHAR(16), c_street_1 VARCHAR(20), \
     c_street_2 VARCHAR(20), c_city VARCHAR(20), c_state CHAR(2), c_zip CHAR(9), c_phone CHAR(16), \
     c_since DATETIME, c_credit CHAR(2), c_credit_lim DECIMAL(12,2), c_discount DECIMAL(4,4), \
     c_balance DECIMAL(12,2), c_ytd_payment DECIMAL(12,2), c_payment_cnt SMALLINT, c_delivery_cnt SMALLINT, \
     c_data VARCHAR(500), PRIMARY KEY (c_w_id, c_d_id, c_id))",
    "CREATE TABLE history (h_c_id INT, h_c_d_id TINYINT, h_c_w_id SMALLINT, h_d_id TINYINT, \
     h_w_id SMALLINT, h_date DATETIME, h_amount DECIMAL(6,2), h_data VARCHAR(24))",
    "CREATE TABLE orders (o_id INT NOT NULL, o_d_id TINYINT NOT NULL, o_w_id SMALLINT NOT NULL, o_c_id INT, \
     o_entry_d DATETIME, o_carrier_id TINYINT, o_ol_cnt TINYINT, o_all_local TINYINT, \
     PRIMARY KEY (o_w_id, o_d_id, o_id))",
    "CREATE TABLE new_orders (no_o_id INT NOT NULL, no_d_id TINYINT NOT NULL, no_w_id SMALLINT NOT NULL, \
     PRIMARY KEY (no_w_id, no_d_id, no_o_id))",
    "CREATE TABLE order_line (ol_o_id INT NOT NULL, ol_d_id TINYINT NOT NULL, ol_w_id SMALLINT NOT NULL, \
     ol_number TINYINT NOT NULL, ol_i_id INT, ol_supply_w_id SMALLINT, ol_delivery_d DATETIME, \
     ol_quantity TINYINT, ol_amount DECIMAL(6,2), ol_dist_info CHAR(24), \
     PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))",
    "CREATE TABLE item (i_id INT NOT NULL, i_im_id INT, i_name VARCHAR(24), i_price DECIMAL(5,2), \
     i_data VARCHAR(50), PRIMARY KEY (i_id))",
    "CREATE TABLE stock (s_i_id INT NOT NULL, s_w_id SMALLINT NOT NULL, s_quantity SMALLINT, \
     s_dist_01 CHAR(24), s_dist_02 CHAR(24), s_dist_03 CHAR(24), s_dist_04 CHAR(24), s_dist_05 CHAR(24), \
     s_dist_06 CHAR(24), s_dist_07 CHAR(24), s_dist_08 CHAR(24), s_dist_09 CHAR(24), s_dist_10 CHAR(24), \
     s_ytd DECIMAL(8,0), s_order_cnt SMALLINT, s_remote_cnt SMALLINT, s_data VARCHAR(50), \
     PRIMARY KEY (s_w_id, s_i_id))",
];

const INDEXES: &[&str] = &[
    "CREATE INDEX customer_name ON customer (c_w_id, c_d_id, c_last, c_first)",
    "CREATE INDEX order_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)",
];

/// Creates and fills the tables for the given number of warehouses.
pub fn load(connection: &mut Connection, warehouses: u32) -> Result<(), ConnectionError> {
    for table in TABLES {
        match connection.dialect() {
            Dialect::MySql => connection.query(table)?,
            Dialect::Postgres => {
                connection.query(&table.replace("TINYINT", "SMALLINT").replace("DATETIME", "TIMESTAMP"))?
            }
        };
    }
    for index in INDEXES {
        connection.query(index)?;
    }
    let mut random = Random::new(7);
    items(connection, &mut random)?;
    for w in 1..=warehouses {
        warehouse(connection, &mut random, w)?;
        for d in 1..=DISTRICTS {
            customers(connection, &mut random, w, d)?;
            orders(connection, &mut random, w, d)?;
        }
    }
    Ok(())
}

/// An INSERT that grows and is sent in pieces.
struct Rows<'a> {
    connection: &'a mut Connection,
    table: &'static str,
    sql: String,
}

impl<'a> Rows<'a> {
    fn of(connection: &'a mut Connection, table: &'static str) -> Rows<'a> {
        Rows { connection, table, sql: String::new() }
    }

    fn add(&mut self, values: &str) -> Result<(), ConnectionError> {
        match self.sql.is_empty() {
            true => self.sql = format!("INSERT INTO {} VALUES ({values})", self.table),
            false => self.sql.push_str(&format!(",({values})")),
        }
        if self.sql.len() > INSERT_BYTES { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> Result<(), ConnectionError> {
        if !self.sql.is_empty() {
            self.connection.query(&std::mem::take(&mut self.sql))?;
        }
        Ok(())
    }
}

/// Returns a text of letters and digits with a length from `least` to `most`.
fn text(random: &mut Random, least: u32, most: u32) -> String {
    const SIGNS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let length = least - 1 + random.one_to(most - least + 1);
    (0..length).map(|_| char::from(SIGNS[random.one_to(SIGNS.len() as u32) as usize - 1])).collect()
}

/// Returns a text that contains the word that a query of the standard searches for in one of ten cases.
fn data(random: &mut Random) -> String {
    let text = text(random, 26, 50);
    if random.one_to(10) > 1 {
        return text;
    }
    let at = random.one_to(text.len() as u32 - 8) as usize;
    format!("{}ORIGINAL{}", &text[..at], &text[at + 8..])
}

fn address(random: &mut Random) -> String {
    let (a, b, c) = (text(random, 10, 20), text(random, 10, 20), text(random, 10, 20));
    format!("'{a}','{b}','{c}','{}','{:04}11111'", text(random, 2, 2), random.one_to(9999))
}

fn items(connection: &mut Connection, random: &mut Random) -> Result<(), ConnectionError> {
    let mut rows = Rows::of(connection, "item");
    for id in 1..=ITEMS {
        let (image, name) = (random.one_to(10_000), text(random, 14, 24));
        let price = f64::from(99 + random.one_to(9901)) / 100.0;
        rows.add(&format!("{id},{image},'{name}',{price:.2},'{}'", data(random)))?;
    }
    rows.send()
}

fn warehouse(connection: &mut Connection, random: &mut Random, w: u32) -> Result<(), ConnectionError> {
    let tax = |random: &mut Random| f64::from(random.one_to(2001) - 1) / 10_000.0;
    let mut rows = Rows::of(connection, "warehouse");
    let name = text(random, 6, 10);
    rows.add(&format!("{w},'{name}',{},{:.4},300000.00", address(random), tax(random)))?;
    rows.send()?;
    let mut rows = Rows::of(connection, "stock");
    for item in 1..=ITEMS {
        let quantity = 9 + random.one_to(91);
        let districts: Vec<String> = (0..10).map(|_| format!("'{}'", text(random, 24, 24))).collect();
        rows.add(&format!("{item},{w},{quantity},{},0,0,0,'{}'", districts.join(","), data(random)))?;
    }
    rows.send()?;
    let mut rows = Rows::of(connection, "district");
    for d in 1..=DISTRICTS {
        let (name, address, tax) = (text(random, 6, 10), address(random), tax(random));
        rows.add(&format!("{d},{w},'{name}',{address},{tax:.4},30000.00,{}", CUSTOMERS + 1))?;
    }
    rows.send()
}

fn customers(
    connection: &mut Connection,
    random: &mut Random,
    w: u32,
    d: u32,
) -> Result<(), ConnectionError> {
    let mut rows = Rows::of(connection, "customer");
    for c in 1..=CUSTOMERS {
        // Each name occurs once; further names have the distribution that terminals use.
        let last = last_name(if c <= 1000 { c - 1 } else { random.non_uniform(255, 0, 999) });
        let credit = if random.one_to(10) == 1 { "BC" } else { "GC" };
        let discount = f64::from(random.one_to(5001) - 1) / 10_000.0;
        let (first, phone) = (text(random, 8, 16), text(random, 16, 16));
        rows.add(&format!(
            "{c},{d},{w},'{first}','OE','{last}',{},'{phone}',NOW(),'{credit}',50000.00,{discount:.4},-10.00,\
             10.00,1,0,'{}'",
            address(random),
            text(random, 300, 500)
        ))?;
    }
    rows.send()?;
    let mut rows = Rows::of(connection, "history");
    for c in 1..=CUSTOMERS {
        rows.add(&format!("{c},{d},{w},{d},{w},NOW(),10.00,'{}'", text(random, 12, 24)))?;
    }
    rows.send()
}

fn orders(connection: &mut Connection, random: &mut Random, w: u32, d: u32) -> Result<(), ConnectionError> {
    // Each customer has one order, in random order.
    let mut customers: Vec<u32> = (1..=CUSTOMERS).collect();
    for at in (1..customers.len()).rev() {
        customers.swap(at, random.one_to(at as u32 + 1) as usize - 1);
    }
    let counts: Vec<u32> = (0..CUSTOMERS).map(|_| 4 + random.one_to(11)).collect();
    let mut rows = Rows::of(connection, "orders");
    for (o, (customer, count)) in (1..).zip(customers.iter().zip(&counts)) {
        let carrier = if o <= DELIVERED { random.one_to(10).to_string() } else { "NULL".to_owned() };
        rows.add(&format!("{o},{d},{w},{customer},NOW(),{carrier},{count},1"))?;
    }
    rows.send()?;
    let mut rows = Rows::of(connection, "new_orders");
    for o in DELIVERED + 1..=CUSTOMERS {
        rows.add(&format!("{o},{d},{w}"))?;
    }
    rows.send()?;
    let mut rows = Rows::of(connection, "order_line");
    for (o, count) in (1..).zip(&counts) {
        for line in 1..=*count {
            let item = random.one_to(ITEMS);
            let (date, amount) = match o <= DELIVERED {
                true => ("NOW()", 0.0),
                false => ("NULL", f64::from(random.one_to(999_999)) / 100.0),
            };
            let info = text(random, 24, 24);
            rows.add(&format!("{o},{d},{w},{line},{item},{w},{date},5,{amount:.2},'{info}'"))?;
        }
    }
    rows.send()
}
