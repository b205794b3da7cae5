//! The compressed protocol: the same results, and damaged frames are refused.

use std::io::Read;

use mysql::prelude::Queryable;
use mysql::{Compression, Conn};

use crate::raw::{RawClient, login_response, packet};
use crate::support::{Cohort, error_code};

/// Returns text that compresses moderately.
fn text(bytes: usize) -> String {
    let words: String =
        (0_u64..1000).map(|n| format!("{} ", n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40)).collect();
    let mut text = words.repeat(bytes / words.len() + 1);
    text.truncate(bytes);
    text
}

#[test]
fn statements_and_results_of_all_sizes_go_compressed() {
    let server = Cohort::new(&["--max-allowed-packet=64M"]);
    let options = server.options().compress(Some(Compression::default()));
    let mut client = Conn::new(options).expect("a connection");
    client.query_drop("CREATE TABLE test.t (id INT PRIMARY KEY, v LONGTEXT)").expect("made");
    // Includes sizes close to those of frames and packets.
    let sizes = [0, 1, 30, 70, 1000, (256 << 10) - 10, 256 << 10, (1 << 24) - 5, 1 << 24];
    for (id, size) in sizes.into_iter().enumerate() {
        let value = text(size);
        if id % 2 == 0 {
            client.query_drop(format!("INSERT INTO test.t VALUES ({id}, '{value}')")).expect("inserted");
        } else {
            client.exec_drop("INSERT INTO test.t VALUES (?, ?)", (id, &value)).expect("inserted");
        }
        let got: Option<String> =
            client.exec_first("SELECT v FROM test.t WHERE id = ?", (id,)).expect("read");
        assert!(got.expect("a row") == value, "{size}");
    }
    let all: Vec<String> = client.query("SELECT v FROM test.t ORDER BY id").expect("read");
    assert!(all.iter().map(String::len).eq(sizes));
    assert_eq!(error_code(client.query_drop("SELEC")), 1064);
    let plain: Vec<String> = server.client().query("SELECT v FROM test.t ORDER BY id").expect("read");
    assert!(all == plain);

    // Other clients number packets and frames differently.
    let sql =
        format!("UPDATE test.t SET v = '{}' WHERE id = 0; SELECT SUM(LENGTH(v)) FROM test.t", text(100_000));
    let output = std::process::Command::new("mariadb")
        .args(["--no-defaults", "--compress", "--host=127.0.0.1", "--user=root", "-N"])
        .args([&format!("--port={}", server.port), "-e", &sql])
        .output()
        .expect("installed");
    let sum = 100_000 + sizes.iter().sum::<usize>();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), sum.to_string(), "{output:?}");
}

#[test]
fn a_damaged_frame_ends_the_connection_with_an_error() {
    let server = Cohort::new(&[]);
    let mut raw = RawClient::connect(&server);
    assert_eq!(raw.payload().expect("a greeting")[0], 10);
    let mut response = login_response();
    response[0] |= 1 << 5;
    raw.send(&packet(1, &response));
    assert_eq!(raw.payload().expect("an answer")[0], 0);
    // A ping in an uncompressed frame; then a frame with wrong contents.
    raw.send(&[5, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 14]);
    let mut pong = [0; 18];
    raw.stream.read_exact(&mut pong).expect("an answer");
    assert_eq!((pong[3], pong[7 + 4]), (1, 0), "a frame of the next number, and OK");
    raw.send(&[4, 0, 0, 0, 99, 0, 0, b'j', b'u', b'n', b'k']);
    let mut last = Vec::new();
    raw.stream.read_to_end(&mut last).expect("the end");
    assert!(last.windows(9).any(|text| text == b"ncompress"), "{last:?}");
    assert_eq!(server.sql("SELECT 1"), "1");
}
