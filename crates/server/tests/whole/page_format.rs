//! Tables with compressed pages: the space saved, before and after a crash.

use std::time::Duration;

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::support::{Cohort, rows};

const ROWS: u32 = 20_000;
const CONTENT: &str = "SELECT COUNT(*), SUM(id), SUM(LENGTH(v)), SUM(CRC32(v)), SUM(CRC32(t)) FROM t";

fn status(client: &mut Conn, name: &str) -> u64 {
    let row: Option<(String, u64)> =
        client.query_first(format!("SHOW GLOBAL STATUS LIKE '{name}'")).expect("shown");
    row.expect("it is shown").1
}

/// Returns the number of used blocks of the data file.
fn used(client: &mut Conn) -> u64 {
    status(client, "Innodb_data_file_blocks") - status(client, "Innodb_data_file_free_blocks")
}

/// Returns the used blocks of the data file after an ALTER whose leftovers have been freed.
fn altered(client: &mut Conn, what: &str) -> u64 {
    client.query_drop(format!("ALTER TABLE t {what}")).expect("altered");
    blocks_at_rest(client)
}

/// Returns the used blocks of the data file once no more are freed: old versions are purged, and all
/// checkpoints that could be in progress have ended. PURGE waits for a checkpoint if files before the current
/// one are still needed, and a checkpoint that began before the ALTER still refers to the old table.
fn blocks_at_rest(client: &mut Conn) -> u64 {
    let mut alike = 0;
    let mut before = used(client);
    for _ in 0..600 {
        client.query_drop("FLUSH BINARY LOGS").expect("a new file");
        client.query_drop("PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY").expect("purged");
        let now = used(client);
        let is_alike = now == before && status(client, "Innodb_history_list_length") == 0;
        alike = if is_alike { alike + 1 } else { 0 };
        if alike == 5 {
            return now;
        }
        before = now;
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the data file does not become stable: {before} blocks");
}

#[test]
fn compressed_pages_take_less_and_outlive_a_crash() {
    let mut server = Cohort::new(&[]);
    let mut client = server.in_test();
    client.query_drop("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(200), t TEXT, KEY (v))").expect("made");
    // Every hundredth row has an overflow value.
    let fill = format!(
        "INSERT INTO t SELECT seq, CONCAT(seq, ' ', SHA1(seq), REPEAT(' and the same', 8)),
         IF(seq % 100 = 0, REPEAT(CONCAT('text ', seq, ' '), 2000), '') FROM seq_1_to_{ROWS}"
    );
    client.query_drop(fill).expect("filled");
    let content = rows(&mut client, CONTENT);

    let plain = altered(&mut client, "FORCE");
    assert_eq!(status(&mut client, "Innodb_num_pages_page_compressed"), 0);
    let compressed = altered(&mut client, "PAGE_COMPRESSED=1");
    assert!(compressed * 2 < plain, "{plain} blocks, compressed {compressed}");
    assert!(status(&mut client, "Innodb_page_compression_saved") > 0);
    let back = altered(&mut client, "PAGE_COMPRESSED=0");
    assert!(back > 2 * compressed, "{plain} blocks, compressed {compressed}, then {back}");
    let rows_compressed = altered(&mut client, "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4");
    assert!(
        rows_compressed.abs_diff(compressed) * 10 < compressed,
        "{compressed} and {rows_compressed} blocks"
    );
    assert_eq!(rows(&mut client, CONTENT), content);

    // The page format is stored in the catalog, and is known after a crash.
    server.kill_and_restart();
    let mut client = server.in_test();
    assert_eq!(rows(&mut client, CONTENT), content);
    assert!(status(&mut client, "Innodb_num_pages_page_decompressed") > 0);
    client.query_drop("UPDATE t SET v = CONCAT('new ', v)").expect("updated");
    let again = altered(&mut client, "FORCE");
    assert!(status(&mut client, "Innodb_num_pages_page_compressed") > 0);
    assert!(again * 2 < plain, "{plain} blocks, compressed {again}");
    assert_eq!(rows(&mut client, "CHECK TABLE t"), "test.t\tcheck\tstatus\tOK\n");

    // OPTIMIZE frees the space of deleted rows.
    client.query_drop("DELETE FROM t WHERE id % 7 > 0").expect("deleted");
    client.query_drop("OPTIMIZE TABLE t").expect("optimized");
    let fewer = altered(&mut client, "COMMENT='fewer'");
    assert!(fewer * 4 < again, "{again} blocks, then {fewer}");
}
