//! The five transactions as stored procedures, in SQL of MariaDB and in PL/pgSQL.
//!
//! A terminal sends one CALL for each transaction, so that a thread for each costs little. The lines of an
//! order are a text of [`LINE_DIGITS`] digits each: item, warehouse and quantity.

use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::connection::{Address, Connection, ConnectionError};
use crate::dialect::Dialect;
use crate::driver::is_retryable;
use crate::interrupt;
use crate::servers::Server;
use crate::tables::SCHEMA;
use crate::tpcc::inputs::{Customer, Inputs, Transaction};
use crate::tpcc::outcome::{Done, Outcome, Tally};

/// Digits of a line of an order: six for the item, three for the warehouse, two for the quantity.
const LINE_DIGITS: usize = 11;

const OF_MYSQL: &[&str] = &[
    "CREATE PROCEDURE new_order(v_w INT, v_d INT, v_c INT, v_lines VARCHAR(200)) \
     BEGIN \
       DECLARE v_o, v_item, v_supply, v_quantity, v_left INT; \
       DECLARE v_at INT DEFAULT 1; \
       DECLARE v_count INT DEFAULT LENGTH(v_lines) DIV 11; \
       DECLARE v_local INT DEFAULT 1; \
       DECLARE v_price DECIMAL(5,2); \
       DECLARE v_discount, v_tax, v_d_tax DECIMAL(4,4); \
       DECLARE v_last, v_credit VARCHAR(16); \
       DECLARE v_name, v_info VARCHAR(24); \
       DECLARE v_i_data, v_s_data VARCHAR(50); \
       DECLARE EXIT HANDLER FOR NOT FOUND ROLLBACK; \
       WHILE v_at <= v_count DO \
         IF SUBSTRING(v_lines, v_at * 11 - 4, 3) <> v_w THEN SET v_local = 0; END IF; \
         SET v_at = v_at + 1; \
       END WHILE; \
       START TRANSACTION; \
       SELECT c_discount, c_last, c_credit, w_tax INTO v_discount, v_last, v_credit, v_tax \
         FROM customer, warehouse WHERE w_id = v_w AND c_w_id = w_id AND c_d_id = v_d AND c_id = v_c; \
       SELECT d_next_o_id, d_tax INTO v_o, v_d_tax FROM district \
         WHERE d_w_id = v_w AND d_id = v_d FOR UPDATE; \
       UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = v_w AND d_id = v_d; \
       INSERT INTO orders VALUES (v_o, v_d, v_w, v_c, NOW(), NULL, v_count, v_local); \
       INSERT INTO new_orders VALUES (v_o, v_d, v_w); \
       SET v_at = 1; \
       WHILE v_at <= v_count DO \
         SET v_item = SUBSTRING(v_lines, v_at * 11 - 10, 6); \
         SET v_supply = SUBSTRING(v_lines, v_at * 11 - 4, 3); \
         SET v_quantity = SUBSTRING(v_lines, v_at * 11 - 1, 2); \
         SELECT i_price, i_name, i_data INTO v_price, v_name, v_i_data FROM item WHERE i_id = v_item; \
         SELECT s_quantity, s_data, CASE v_d WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 \
           WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 \
           WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE s_dist_10 END \
           INTO v_left, v_s_data, v_info FROM stock WHERE s_i_id = v_item AND s_w_id = v_supply FOR UPDATE; \
         SET v_left = v_left - v_quantity; \
         IF v_left < 10 THEN SET v_left = v_left + 91; END IF; \
         UPDATE stock SET s_quantity = v_left, s_ytd = s_ytd + v_quantity, s_order_cnt = s_order_cnt + 1, \
           s_remote_cnt = s_remote_cnt + IF(v_supply = v_w, 0, 1) \
           WHERE s_i_id = v_item AND s_w_id = v_supply; \
         INSERT INTO order_line VALUES \
           (v_o, v_d, v_w, v_at, v_item, v_supply, NULL, v_quantity, v_price * v_quantity, v_info); \
         SET v_at = v_at + 1; \
       END WHILE; \
       COMMIT; \
     END",
    "CREATE PROCEDURE payment(v_w INT, v_d INT, v_c_w INT, v_c_d INT, v_c INT, v_last VARCHAR(16), \
       v_amount DECIMAL(6,2)) \
     BEGIN \
       DECLARE v_count INT; \
       DECLARE v_w_name, v_d_name VARCHAR(10); \
       DECLARE v_credit CHAR(2); \
       DECLARE v_data VARCHAR(500); \
       DECLARE v_balance DECIMAL(12,2); \
       START TRANSACTION; \
       UPDATE warehouse SET w_ytd = w_ytd + v_amount WHERE w_id = v_w; \
       SELECT w_name INTO v_w_name FROM warehouse WHERE w_id = v_w; \
       UPDATE district SET d_ytd = d_ytd + v_amount WHERE d_w_id = v_w AND d_id = v_d; \
       SELECT d_name INTO v_d_name FROM district WHERE d_w_id = v_w AND d_id = v_d; \
       IF v_c = 0 THEN \
         SELECT (COUNT(*) - 1) DIV 2 INTO v_count FROM customer \
           WHERE c_w_id = v_c_w AND c_d_id = v_c_d AND c_last = v_last; \
         SELECT c_id INTO v_c FROM customer WHERE c_w_id = v_c_w AND c_d_id = v_c_d AND c_last = v_last \
           ORDER BY c_first LIMIT 1 OFFSET v_count; \
       END IF; \
       SELECT c_credit, c_balance, c_data INTO v_credit, v_balance, v_data FROM customer \
         WHERE c_w_id = v_c_w AND c_d_id = v_c_d AND c_id = v_c FOR UPDATE; \
       IF v_credit = 'BC' THEN \
         SET v_data = LEFT(CONCAT('| ', v_c, ' ', v_c_d, ' ', v_c_w, ' ', v_d, ' ', v_w, ' ', v_amount, ' ', \
           v_data), 500); \
       END IF; \
       UPDATE customer SET c_balance = c_balance - v_amount, c_ytd_payment = c_ytd_payment + v_amount, \
         c_payment_cnt = c_payment_cnt + 1, c_data = v_data \
         WHERE c_w_id = v_c_w AND c_d_id = v_c_d AND c_id = v_c; \
       INSERT INTO history VALUES \
         (v_c, v_c_d, v_c_w, v_d, v_w, NOW(), v_amount, CONCAT(v_w_name, '    ', v_d_name)); \
       COMMIT; \
     END",
    "CREATE PROCEDURE order_status(v_w INT, v_d INT, v_c INT, v_last VARCHAR(16)) \
     BEGIN \
       DECLARE v_o, v_count INT; \
       DECLARE v_sum DECIMAL(12,2) DEFAULT 0; \
       DECLARE v_balance DECIMAL(12,2); \
       DECLARE v_first VARCHAR(16); \
       START TRANSACTION; \
       IF v_c = 0 THEN \
         SELECT (COUNT(*) - 1) DIV 2 INTO v_count FROM customer \
           WHERE c_w_id = v_w AND c_d_id = v_d AND c_last = v_last; \
         SELECT c_id INTO v_c FROM customer WHERE c_w_id = v_w AND c_d_id = v_d AND c_last = v_last \
           ORDER BY c_first LIMIT 1 OFFSET v_count; \
       END IF; \
       SELECT c_balance, c_first INTO v_balance, v_first FROM customer \
         WHERE c_w_id = v_w AND c_d_id = v_d AND c_id = v_c; \
       SELECT o_id INTO v_o FROM orders WHERE o_w_id = v_w AND o_d_id = v_d AND o_c_id = v_c \
         ORDER BY o_id DESC LIMIT 1; \
       FOR line IN (SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
         WHERE ol_w_id = v_w AND ol_d_id = v_d AND ol_o_id = v_o) \
       DO SET v_sum = v_sum + line.ol_amount; \
       END FOR; \
       COMMIT; \
     END",
    "CREATE PROCEDURE delivery(v_w INT, v_carrier INT) \
     BEGIN \
       DECLARE v_d INT DEFAULT 1; \
       DECLARE v_o, v_c INT; \
       DECLARE v_sum DECIMAL(12,2); \
       DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_o = NULL; \
       START TRANSACTION; \
       WHILE v_d <= 10 DO \
         SELECT no_o_id INTO v_o FROM new_orders WHERE no_w_id = v_w AND no_d_id = v_d \
           ORDER BY no_o_id LIMIT 1 FOR UPDATE; \
         IF v_o IS NOT NULL THEN \
           DELETE FROM new_orders WHERE no_w_id = v_w AND no_d_id = v_d AND no_o_id = v_o; \
           SELECT o_c_id INTO v_c FROM orders WHERE o_w_id = v_w AND o_d_id = v_d AND o_id = v_o; \
           UPDATE orders SET o_carrier_id = v_carrier WHERE o_w_id = v_w AND o_d_id = v_d AND o_id = v_o; \
           UPDATE order_line SET ol_delivery_d = NOW() \
             WHERE ol_w_id = v_w AND ol_d_id = v_d AND ol_o_id = v_o; \
           SELECT SUM(ol_amount) INTO v_sum FROM order_line \
             WHERE ol_w_id = v_w AND ol_d_id = v_d AND ol_o_id = v_o; \
           UPDATE customer SET c_balance = c_balance + v_sum, c_delivery_cnt = c_delivery_cnt + 1 \
             WHERE c_w_id = v_w AND c_d_id = v_d AND c_id = v_c; \
         END IF; \
         SET v_d = v_d + 1; \
       END WHILE; \
       COMMIT; \
     END",
    "CREATE PROCEDURE stock_level(v_w INT, v_d INT, v_threshold INT) \
     BEGIN \
       DECLARE v_o, v_count INT; \
       START TRANSACTION; \
       SELECT d_next_o_id INTO v_o FROM district WHERE d_w_id = v_w AND d_id = v_d; \
       SELECT COUNT(DISTINCT s_i_id) INTO v_count FROM order_line, stock WHERE ol_w_id = v_w \
         AND ol_d_id = v_d AND ol_o_id < v_o AND ol_o_id >= v_o - 20 AND s_w_id = v_w \
         AND s_i_id = ol_i_id AND s_quantity < v_threshold; \
       COMMIT; \
     END",
];

const OF_POSTGRES: &[&str] = &[
    "CREATE PROCEDURE new_order(v_w INT, v_d INT, v_c INT, v_lines TEXT) LANGUAGE plpgsql AS $$ \
     DECLARE \
       v_o INT; v_item INT; v_supply INT; v_quantity INT; v_left INT; v_count INT := length(v_lines) / 11; \
       v_local INT := 1; v_price DECIMAL(5,2); v_discount DECIMAL(4,4); v_tax DECIMAL(4,4); \
       v_d_tax DECIMAL(4,4); v_last TEXT; v_credit TEXT; v_name TEXT; v_info TEXT; v_i_data TEXT; \
       v_s_data TEXT; \
     BEGIN \
       FOR v_at IN 1 .. v_count LOOP \
         IF substr(v_lines, v_at * 11 - 4, 3)::INT <> v_w THEN v_local := 0; END IF; \
       END LOOP; \
       SELECT c_discount, c_last, c_credit, w_tax INTO v_discount, v_last, v_credit, v_tax \
         FROM customer, warehouse WHERE w_id = v_w AND c_w_id = w_id AND c_d_id = v_d AND c_id = v_c; \
       SELECT d_next_o_id, d_tax INTO v_o, v_d_tax FROM district \
         WHERE d_w_id = v_w AND d_id = v_d FOR UPDATE; \
       UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = v_w AND d_id = v_d; \
       INSERT INTO orders VALUES (v_o, v_d, v_w, v_c, NOW(), NULL, v_count, v_local); \
       INSERT INTO new_orders VALUES (v_o, v_d, v_w); \
       FOR v_at IN 1 .. v_count LOOP \
         v_item := substr(v_lines, v_at * 11 - 10, 6)::INT; \
         v_supply := substr(v_lines, v_at * 11 - 4, 3)::INT; \
         v_quantity := substr(v_lines, v_at * 11 - 1, 2)::INT; \
         SELECT i_price, i_name, i_data INTO v_price, v_name, v_i_data FROM item WHERE i_id = v_item; \
         IF NOT FOUND THEN ROLLBACK; RETURN; END IF; \
         SELECT s_quantity, s_data, CASE v_d WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 \
           WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 \
           WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE s_dist_10 END \
           INTO v_left, v_s_data, v_info FROM stock WHERE s_i_id = v_item AND s_w_id = v_supply FOR UPDATE; \
         v_left := v_left - v_quantity; \
         IF v_left < 10 THEN v_left := v_left + 91; END IF; \
         UPDATE stock SET s_quantity = v_left, s_ytd = s_ytd + v_quantity, s_order_cnt = s_order_cnt + 1, \
           s_remote_cnt = s_remote_cnt + CASE WHEN v_supply = v_w THEN 0 ELSE 1 END \
           WHERE s_i_id = v_item AND s_w_id = v_supply; \
         INSERT INTO order_line VALUES \
           (v_o, v_d, v_w, v_at, v_item, v_supply, NULL, v_quantity, v_price * v_quantity, v_info); \
       END LOOP; \
     END $$",
    "CREATE PROCEDURE payment(v_w INT, v_d INT, v_c_w INT, v_c_d INT, v_c INT, v_last TEXT, v_amount DECIMAL) \
     LANGUAGE plpgsql AS $$ \
     DECLARE \
       v_count INT; v_w_name TEXT; v_d_name TEXT; v_credit TEXT; v_data TEXT; v_balance DECIMAL(12,2); \
     BEGIN \
       UPDATE warehouse SET w_ytd = w_ytd + v_amount WHERE w_id = v_w; \
       SELECT w_name INTO v_w_name FROM warehouse WHERE w_id = v_w; \
       UPDATE district SET d_ytd = d_ytd + v_amount WHERE d_w_id = v_w AND d_id = v_d; \
       SELECT d_name INTO v_d_name FROM district WHERE d_w_id = v_w AND d_id = v_d; \
       IF v_c = 0 THEN \
         SELECT (COUNT(*) - 1) / 2 INTO v_count FROM customer \
           WHERE c_w_id = v_c_w AND c_d_id = v_c_d AND c_last = v_last; \
         SELECT c_id INTO v_c FROM customer WHERE c_w_id = v_c_w AND c_d_id = v_c_d AND c_last = v_last \
           ORDER BY c_first LIMIT 1 OFFSET v_count; \
       END IF; \
       SELECT c_credit, c_balance, c_data INTO v_credit, v_balance, v_data FROM customer \
         WHERE c_w_id = v_c_w AND c_d_id = v_c_d AND c_id = v_c FOR UPDATE; \
       IF v_credit = 'BC' THEN \
         v_data := left(concat('| ', v_c, ' ', v_c_d, ' ', v_c_w, ' ', v_d, ' ', v_w, ' ', v_amount, ' ', \
           v_data), 500); \
       END IF; \
       UPDATE customer SET c_balance = c_balance - v_amount, c_ytd_payment = c_ytd_payment + v_amount, \
         c_payment_cnt = c_payment_cnt + 1, c_data = v_data \
         WHERE c_w_id = v_c_w AND c_d_id = v_c_d AND c_id = v_c; \
       INSERT INTO history VALUES \
         (v_c, v_c_d, v_c_w, v_d, v_w, NOW(), v_amount, concat(v_w_name, '    ', v_d_name)); \
     END $$",
    "CREATE PROCEDURE order_status(v_w INT, v_d INT, v_c INT, v_last TEXT) LANGUAGE plpgsql AS $$ \
     DECLARE \
       v_o INT; v_count INT; v_sum DECIMAL(12,2) := 0; v_balance DECIMAL(12,2); v_first TEXT; line RECORD; \
     BEGIN \
       IF v_c = 0 THEN \
         SELECT (COUNT(*) - 1) / 2 INTO v_count FROM customer \
           WHERE c_w_id = v_w AND c_d_id = v_d AND c_last = v_last; \
         SELECT c_id INTO v_c FROM customer WHERE c_w_id = v_w AND c_d_id = v_d AND c_last = v_last \
           ORDER BY c_first LIMIT 1 OFFSET v_count; \
       END IF; \
       SELECT c_balance, c_first INTO v_balance, v_first FROM customer \
         WHERE c_w_id = v_w AND c_d_id = v_d AND c_id = v_c; \
       SELECT o_id INTO v_o FROM orders WHERE o_w_id = v_w AND o_d_id = v_d AND o_c_id = v_c \
         ORDER BY o_id DESC LIMIT 1; \
       FOR line IN SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
         WHERE ol_w_id = v_w AND ol_d_id = v_d AND ol_o_id = v_o \
       LOOP v_sum := v_sum + line.ol_amount; \
       END LOOP; \
     END $$",
    "CREATE PROCEDURE delivery(v_w INT, v_carrier INT) LANGUAGE plpgsql AS $$ \
     DECLARE v_o INT; v_c INT; v_sum DECIMAL(12,2); \
     BEGIN \
       FOR v_d IN 1 .. 10 LOOP \
         SELECT no_o_id INTO v_o FROM new_orders WHERE no_w_id = v_w AND no_d_id = v_d \
           ORDER BY no_o_id LIMIT 1 FOR UPDATE; \
         IF v_o IS NOT NULL THEN \
           DELETE FROM new_orders WHERE no_w_id = v_w AND no_d_id = v_d AND no_o_id = v_o; \
           SELECT o_c_id INTO v_c FROM orders WHERE o_w_id = v_w AND o_d_id = v_d AND o_id = v_o; \
           UPDATE orders SET o_carrier_id = v_carrier WHERE o_w_id = v_w AND o_d_id = v_d AND o_id = v_o; \
           UPDATE order_line SET ol_delivery_d = NOW() \
             WHERE ol_w_id = v_w AND ol_d_id = v_d AND ol_o_id = v_o; \
           SELECT SUM(ol_amount) INTO v_sum FROM order_line \
             WHERE ol_w_id = v_w AND ol_d_id = v_d AND ol_o_id = v_o; \
           UPDATE customer SET c_balance = c_balance + v_sum, c_delivery_cnt = c_delivery_cnt + 1 \
             WHERE c_w_id = v_w AND c_d_id = v_d AND c_id = v_c; \
         END IF; \
       END LOOP; \
     END $$",
    "CREATE PROCEDURE stock_level(v_w INT, v_d INT, v_threshold INT) LANGUAGE plpgsql AS $$ \
     DECLARE v_o INT; v_count INT; \
     BEGIN \
       SELECT d_next_o_id INTO v_o FROM district WHERE d_w_id = v_w AND d_id = v_d; \
       SELECT COUNT(DISTINCT s_i_id) INTO v_count FROM order_line, stock WHERE ol_w_id = v_w \
         AND ol_d_id = v_d AND ol_o_id < v_o AND ol_o_id >= v_o - 20 AND s_w_id = v_w \
         AND s_i_id = ol_i_id AND s_quantity < v_threshold; \
     END $$",
];

/// Creates the procedures in the schema of the tables.
pub fn create(connection: &mut Connection) -> Result<(), ConnectionError> {
    let procedures = match connection.dialect() {
        Dialect::MySql => OF_MYSQL,
        Dialect::Postgres => OF_POSTGRES,
    };
    procedures.iter().try_for_each(|sql| connection.query(sql).map(drop))
}

/// Returns the CALL of a transaction.
fn call(w: u32, transaction: &Transaction) -> String {
    let parts = |customer: &Customer| match customer {
        Customer::Id(id) => (*id, String::new()),
        Customer::Name(name) => (0, name.clone()),
    };
    match transaction {
        Transaction::NewOrder { d, c, lines } => {
            let mut text = String::with_capacity(lines.len() * LINE_DIGITS);
            for line in lines {
                text += &format!("{:06}{:03}{:02}", line.item, line.warehouse, line.quantity);
            }
            format!("CALL new_order({w},{d},{c},'{text}')")
        }
        Transaction::Payment { d, c_w, c_d, customer, amount } => {
            let (c, name) = parts(customer);
            format!("CALL payment({w},{d},{c_w},{c_d},{c},'{name}',{amount:.2})")
        }
        Transaction::OrderStatus { d, customer } => {
            let (c, name) = parts(customer);
            format!("CALL order_status({w},{d},{c},'{name}')")
        }
        Transaction::Delivery { carrier } => format!("CALL delivery({w},{carrier})"),
        Transaction::StockLevel { d, threshold } => format!("CALL stock_level({w},{d},{threshold})"),
    }
}

/// Time between two checks whether the run is interrupted.
const TICK: Duration = Duration::from_millis(20);
const WARM: u8 = 0;
const MEASURE: u8 = 1;
const STOP: u8 = 2;

/// Drives the given number of terminals, each on its own thread.
pub fn run(
    server: &Server,
    warehouses: u32,
    terminals: u32,
    warm: Duration,
    measure: Duration,
) -> Result<Outcome, String> {
    let phase = AtomicU8::new(WARM);
    thread::scope(|scope| {
        let start = |n| {
            let (address, phase) = (&server.address, &phase);
            scope.spawn(move || until_stopped(address, Inputs::new(u64::from(n) + 1, warehouses), phase))
        };
        let running: Vec<_> = (0..terminals).map(start).collect();
        pause(warm);
        let (began, used) = (Instant::now(), server.processor_seconds());
        phase.store(MEASURE, Ordering::Relaxed);
        pause(measure);
        phase.store(STOP, Ordering::Relaxed);
        let server_seconds = server.processor_seconds() - used;
        let mut outcome =
            Outcome { seconds: began.elapsed().as_secs_f64(), server_seconds, ..Outcome::default() };
        for terminal in running {
            let done = terminal.join().map_err(|_| "a terminal panicked".to_owned())?;
            let done = done.map_err(|error| error.to_string())?;
            outcome.add(&done);
        }
        Ok(outcome)
    })
}

fn pause(length: Duration) {
    let began = Instant::now();
    while began.elapsed() < length && !interrupt::is_requested() {
        thread::sleep(TICK.min(length));
    }
}

fn until_stopped(address: &Address, mut inputs: Inputs, phase: &AtomicU8) -> Result<Tally, ConnectionError> {
    let mut connection = Connection::open(address, SCHEMA)?;
    let mut tally = Tally::default();
    while phase.load(Ordering::Relaxed) != STOP {
        let (w, transaction) = inputs.next();
        let sql = call(w, &transaction);
        let began = Instant::now();
        let is_new_order = matches!(transaction, Transaction::NewOrder { .. });
        let mut done = Done { is_new_order, retries: 0 };
        while let Err(error) = connection.query(&sql) {
            match error {
                ConnectionError::Server(error) if is_retryable(&error.code) => done.retries += 1,
                other => return Err(other),
            }
            connection.query("ROLLBACK")?;
        }
        if phase.load(Ordering::Relaxed) == MEASURE {
            tally.count(&done, began);
        }
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpcc::inputs::Item;

    #[test]
    fn a_call_has_the_lines_of_the_order() {
        let lines = vec![
            Item { item: 7, warehouse: 2, quantity: 10 },
            Item { item: 100_001, warehouse: 1, quantity: 3 },
        ];
        let transaction = Transaction::NewOrder { d: 4, c: 5, lines };
        assert_eq!(call(1, &transaction), "CALL new_order(1,4,5,'0000070021010000100103')");
        let customer = Customer::Name("BARBARBAR".to_owned());
        let transaction = Transaction::Payment { d: 4, c_w: 2, c_d: 3, customer, amount: 1.5 };
        assert_eq!(call(1, &transaction), "CALL payment(1,4,2,3,0,'BARBARBAR',1.50)");
    }
}
