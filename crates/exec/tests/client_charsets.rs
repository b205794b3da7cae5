//! Clients whose statements are not in UTF-8.

mod world;

use cohort_types::Charset;
use world::{Client, Server};

fn client() -> (Server, Client) {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let client = server.connect();
    (server, client)
}

#[test]
fn statements_are_read_in_the_clients_character_set() {
    let (_server, mut client) = client();
    for (name, text) in
        [("cp1251", "Привет"), ("gbk", "中文"), ("latin2", "áčž"), ("sjis", "あいソ"), ("latin1", "äß€")]
    {
        client.ok(&format!("CREATE OR REPLACE TABLE t (a VARCHAR(20) CHARACTER SET {name}, KEY (a))"));
        client.ok(&format!("SET NAMES {name}"));
        let charset = Charset::by_name(name).expect("known");
        let coded = |sql: &str| {
            let mut out = Vec::new();
            assert_eq!(charset.encode(sql.as_bytes(), &mut out), 0);
            out
        };
        let answer = client.run_bytes(&coded(&format!("INSERT INTO t VALUES ('{text}'), ('abc')")));
        assert!(answer.starts_with("OK"), "{name}: {answer}");
        let count = client.run_bytes(&coded(&format!("SELECT COUNT(*) AS n FROM t WHERE a = '{text}'")));
        assert_eq!(count, "n\n1\n", "{name}");
        let mut bytes = Vec::new();
        charset.encode(text.as_bytes(), &mut bytes);
        let wanted: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(client.run("SELECT HEX(MAX(a)) AS h FROM t WHERE a <> 'abc'"), format!("h\n{wanted}\n"));
        client.ok("SET NAMES utf8mb4");
        let count = client.run(&format!("SELECT COUNT(*) AS n FROM t WHERE a = '{text}'"));
        assert_eq!(count, "n\n1\n", "{name}");
    }
}

#[test]
fn strings_after_an_introducer_are_the_bytes_sent() {
    let (_server, mut client) = client();
    client.ok("SET NAMES latin1");
    let answer = client.run_bytes(b"SELECT HEX(_binary'\xff\xe4') AS a, HEX(_cp1251'\xc6') AS b");
    assert_eq!(answer, "a | b\nFFE4 | C6\n");
    client.ok("CREATE TABLE b (b VARBINARY(10))");
    let answer = client.run_bytes(b"INSERT INTO b VALUES ('\xff\x80'), (_binary'\xfe')");
    assert!(answer.starts_with("OK"), "{answer}");
    assert_eq!(client.run("SELECT HEX(b) AS h FROM b ORDER BY b"), "h\nFE\nFF80\n");
}

/// Tests character sets with a multi-byte backslash or apostrophe, or with a letter at the code of the
/// backslash.
#[test]
fn a_character_that_looks_like_a_sign_ends_no_literal() {
    let (_server, mut client) = client();
    client.ok("CREATE TABLE t (a VARCHAR(20) CHARACTER SET utf8mb4)");
    for (name, literal, held) in [
        ("sjis", &b"'\x81_\\' OR 1=1 -- '"[..], "5C27204F5220313D31202D2D20"),
        ("ujis", b"'\xa1\xc0\\' OR 1=1 -- '", "5C27204F5220313D31202D2D20"),
        ("armscii8", b"'\xff OR 1=1 -- '", "27204F5220313D31202D2D20"),
        ("swe7", b"'x\\' OR 1=1 -- \\\\'", "7827204F5220313D31202D2D20C396"),
    ] {
        client.ok("DELETE FROM t");
        client.ok(&format!("SET NAMES {name}"));
        let answer = client.run_bytes(&[b"INSERT INTO t VALUES (", literal, b")"].concat());
        assert!(answer.starts_with("OK"), "{name}: {answer}");
        client.ok("SET NAMES utf8mb4");
        assert_eq!(client.run("SELECT HEX(a) AS h FROM t"), format!("h\n{held}\n"), "{name}");
    }
}

#[test]
fn statements_sent_together_are_read_as_those_before_them_set() {
    let (_server, mut client) = client();
    client.ok("CREATE TABLE t (a VARCHAR(20) CHARACTER SET utf8mb4)");
    client.ok("SET NAMES latin1");
    let text = [
        b"SET @a = ';\xe9'; SET NAMES utf8mb4; INSERT INTO t VALUES ('\xc3\xa9'), (@a);".as_slice(),
        b"SET NAMES gbk; INSERT INTO t VALUES ('\xbf\\');",
        b"SET sql_mode = 'NO_BACKSLASH_ESCAPES'; INSERT INTO t VALUES ('\xd6\xd0\\');",
        b"SET NAMES utf8mb4; SELECT HEX(GROUP_CONCAT(a)) AS h FROM t",
    ];
    let answer = client.run_bytes(&text.concat());
    assert!(answer.ends_with("h\nC3A92C3BC3A92CE7B8972CE4B8AD5C\n"), "{answer}");
}

#[test]
fn a_client_cannot_send_units_of_several_bytes() {
    let (_server, mut client) = client();
    for statement in ["SET NAMES ucs2", "SET character_set_client = utf16", "SET NAMES utf32"] {
        let answer = client.run(statement);
        assert!(answer.starts_with("ERROR 1231"), "{statement}: {answer}");
    }
}
