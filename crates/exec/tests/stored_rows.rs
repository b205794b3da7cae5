//! Rows sent in stored format must be equal to rows sent as values. Runs random statements on random tables,
//! once unchanged and once with a condition that is always true, which requires values. Compares the results
//! byte by byte, in both protocols and several character sets.

mod world;

use cohort_exec::Session;
use cohort_protocol::{
    Capabilities, ColumnMeta, Drain, OkInfo, ResultEncoding, ResultHead, ResultSink, ResultWriter, RowFormat,
    StatusFlags,
};
use cohort_types::{Collation, SqlError, SqlResult, StoredColumns, Value};
use world::random::Random;
use world::{Client, Server};

/// Types of values.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Int(i64, i64),
    UInt(u64),
    Decimal(u32),
    Real,
    Date,
    Time,
    Temporal,
    Year,
    Bits,
    Member,
    Text,
    Latin,
    Bytes,
    Uuid,
}

const TYPES: [(&str, Kind); 28] = [
    ("TINYINT", Kind::Int(-128, 127)),
    ("TINYINT UNSIGNED ZEROFILL", Kind::UInt(255)),
    ("SMALLINT", Kind::Int(-32768, 32767)),
    ("MEDIUMINT", Kind::Int(-8388608, 8388607)),
    ("MEDIUMINT UNSIGNED", Kind::UInt(16777215)),
    ("INT", Kind::Int(-3, 3)),
    ("INT", Kind::Int(i32::MIN as i64, i32::MAX as i64)),
    ("INT(8) ZEROFILL", Kind::UInt(4294967295)),
    ("BIGINT", Kind::Int(i64::MIN, i64::MAX)),
    ("BIGINT UNSIGNED", Kind::UInt(u64::MAX)),
    ("DECIMAL(10,3)", Kind::Decimal(7)),
    ("DECIMAL(30,3)", Kind::Decimal(27)),
    ("FLOAT", Kind::Real),
    ("DOUBLE", Kind::Real),
    ("DATE", Kind::Date),
    ("TIME(2)", Kind::Time),
    ("DATETIME(3)", Kind::Temporal),
    ("TIMESTAMP(1) NULL", Kind::Temporal),
    ("YEAR", Kind::Year),
    ("BIT(9)", Kind::Bits),
    ("ENUM('b', 'a', 'ä')", Kind::Member),
    ("CHAR(40) CHARACTER SET latin1", Kind::Latin),
    ("VARCHAR(300) COLLATE utf8mb4_general_ci", Kind::Text),
    ("VARCHAR(300) COLLATE utf8mb4_unicode_ci", Kind::Text),
    ("VARCHAR(300) COLLATE utf8mb4_nopad_bin", Kind::Text),
    ("LONGTEXT COLLATE utf8mb4_bin", Kind::Text),
    ("VARBINARY(40)", Kind::Bytes),
    ("UUID", Kind::Uuid),
];

/// Character sets of clients.
const RESULTS: [Option<&str>; 5] = [
    None,
    Some("utf8mb4_general_ci"),
    Some("latin1_swedish_ci"),
    Some("utf8mb3_general_ci"),
    Some("utf16_general_ci"),
];

impl Random {
    fn text(&mut self, pieces: &[&str]) -> String {
        let count = if self.one_in(12) { 40 } else { self.below(4) };
        (0..count).map(|_| self.of(pieces)).collect()
    }

    fn value(&mut self, kind: Kind) -> String {
        if self.one_in(7) {
            return "NULL".to_owned();
        }
        let day = format!("20{:02}-{:02}-{:02}", self.below(30) + 1, self.below(12) + 1, self.below(28) + 1);
        match kind {
            Kind::Int(least, most) if self.one_in(5) => self.of(&[least, most]).to_string(),
            Kind::Int(least, most) => {
                let wide = i128::from(most) - i128::from(least) + 1;
                (i128::from(least) + i128::from(self.next()) % wide).to_string()
            }
            Kind::UInt(most) if self.one_in(5) => most.to_string(),
            Kind::UInt(most) => (self.next() & most).to_string(),
            Kind::Decimal(digits) => {
                let digits: String = (0..digits).map(|_| self.of(&["0", "1", "9"])).collect();
                format!("{}{digits}.{}", self.of(&["", "-"]), self.below(1000))
            }
            Kind::Real => format!("{}.{}e{}", self.below(100) as i64 - 50, self.below(1000), self.below(20)),
            Kind::Date => format!("'{day}'"),
            Kind::Time => format!("'{}:{:02}:07.5'", self.below(800) as i64 - 400, self.below(60)),
            Kind::Temporal => format!("'{day} {:02}:30:00.{}'", self.below(24), self.of(&["0", "1", "25"])),
            Kind::Year => (1950 + self.below(150)).to_string(),
            Kind::Bits => self.below(512).to_string(),
            Kind::Member => self.of(&["'a'", "'b'", "'ä'"]).to_owned(),
            Kind::Text if self.one_in(150) => format!("CONCAT(RPAD('', 200, 'long'), {})", self.below(3)),
            Kind::Text => {
                format!("'{}'", self.text(&["a", "A", "ab", " ", "Z", "ä", "Ä", "ß", "€", "😀", "-", "~9"]))
            }
            Kind::Latin => format!("'{}'", self.text(&["a", "A", " ", "Zz", "ä", "é", "0123456789"])),
            Kind::Bytes => format!("x'{}'", self.text(&["00", "ff", "41", "20"])),
            Kind::Uuid => format!("'{:08x}-1111-4222-8333-00000000000{}'", self.below(3), self.below(9)),
        }
    }
}

/// A sink that counts the rows in stored format and encodes everything like a connection.
struct Wire<'w> {
    writer: ResultWriter<'w>,
    stored: usize,
}

impl ResultSink for Wire<'_> {
    fn start(&mut self, columns: &[ColumnMeta], head: ResultHead) {
        self.writer.start(columns, head);
    }
    fn row(&mut self, values: &[Value]) {
        self.writer.row(values);
    }
    fn stored_rows(&mut self, columns: &StoredColumns<'_>, rows: &[&[u8]]) -> SqlResult<()> {
        self.stored += rows.len();
        self.writer.stored_rows(columns, rows)
    }
    fn finish(&mut self, status: StatusFlags, warnings: u16) {
        self.writer.finish(status, warnings);
    }
    fn ok(&mut self, ok: &OkInfo<'_>) {
        self.writer.ok(ok);
    }
    fn error(&mut self, error: &SqlError) {
        self.writer.error(error);
    }
    fn is_dead(&self) -> bool {
        self.writer.is_dead()
    }
}

/// A drain that collects the bytes sent early.
#[derive(Default)]
struct Gathered(Vec<u8>);

impl Drain for Gathered {
    fn drain(&mut self, out: &mut Vec<u8>) {
        self.0.append(out);
    }
    fn receive(&mut self, _: u8, _: &mut Vec<u8>) -> Option<u8> {
        None
    }
    fn is_dead(&self) -> bool {
        false
    }
}

/// Row format and character set of a result.
#[derive(Clone, Copy, Debug)]
struct Asked {
    format: RowFormat,
    results: Option<Collation>,
}

/// A result.
#[derive(Default)]
struct Outcome {
    bytes: Vec<u8>,
    /// Number of rows in stored format.
    stored: usize,
    /// Counters of the session.
    counts: String,
}

fn outcome_of(client: &mut Client, asked: Asked, run: impl FnOnce(&mut Session, &mut Wire<'_>)) -> Outcome {
    let encoding = ResultEncoding { capabilities: Capabilities::DEPRECATE_EOF, results: asked.results };
    let (mut out, mut kept) = (Vec::new(), Gathered::default());
    let writer = ResultWriter::new(&mut out, 1, encoding, asked.format, &mut kept);
    let mut wire = Wire { writer, stored: 0 };
    client.ok("FLUSH STATUS");
    run(&mut client.session, &mut wire);
    let stored = wire.stored;
    kept.0.append(&mut out);
    let mut counts = client.run("SELECT FOUND_ROWS()");
    counts +=
        &client.run("SHOW STATUS WHERE variable_name LIKE 'Sort%' OR variable_name LIKE 'Handler_read%'");
    Outcome { bytes: kept.0, stored, counts }
}

fn answer(client: &mut Client, sql: &str, asked: Asked) -> Outcome {
    if asked.format == RowFormat::Text {
        return outcome_of(client, asked, |session, wire| session.query(sql.as_bytes(), wire));
    }
    let id = match client.session.prepare(sql.as_bytes()) {
        Ok(prepared) => prepared.id,
        Err(error) => return Outcome { counts: error.to_string(), ..Outcome::default() },
    };
    let answer = outcome_of(client, asked, |session, wire| session.execute(id, &[], wire));
    client.session.close_statement(id);
    answer
}

struct Table {
    /// The columns; `id` is the first one.
    columns: Vec<(String, Kind)>,
    ids: usize,
}

fn fill(client: &mut Client, random: &mut Random, columns: &[(String, Kind)], ids: std::ops::Range<usize>) {
    for id in ids {
        if random.one_in(10) {
            continue;
        }
        let values: Vec<String> = columns[1..].iter().map(|(_, kind)| random.value(*kind)).collect();
        client.ok(&format!("INSERT INTO t VALUES ({id}, {})", values.join(", ")));
    }
}

fn table(client: &mut Client, random: &mut Random, round: usize) -> Table {
    let column = |n: usize, at: usize| (format!("c{n}"), TYPES[at % TYPES.len()]);
    let types: Vec<(String, (&str, Kind))> =
        (0..6).map(|n| column(n, round * 5 + n * (1 + round / 6))).collect();
    let declared: Vec<String> = types.iter().map(|(name, (ty, _))| format!("{name} {ty}")).collect();
    client.ok(&format!("CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, {})", declared.join(", ")));
    let mut columns = vec![("id".to_owned(), Kind::Int(0, 0))];
    columns.extend(types.into_iter().map(|(name, (_, kind))| (name, kind)));
    fill(client, random, &columns, 0..90);
    if random.one_in(2) {
        // Existing rows are shorter.
        let (name, (ty, kind)) = column(6, random.below(TYPES.len()));
        client.ok(&format!("ALTER TABLE t ADD COLUMN {name} {ty}"));
        client.ok("ALTER TABLE t ADD COLUMN late VARCHAR(20) DEFAULT 'later'");
        columns.extend([(name, kind), ("late".to_owned(), Kind::Text)]);
    }
    if random.one_in(2) {
        // Existing rows have another column order and dropped columns.
        let (name, (ty, kind)) = column(7, random.below(TYPES.len()));
        let gone = columns.remove(random.below(columns.len() - 1) + 1).0;
        client.ok(&format!("ALTER TABLE t ADD {name} {ty} AFTER id, DROP {gone}, ALGORITHM=INSTANT"));
        columns.insert(1, (name, kind));
    }
    fill(client, random, &columns[..], 90..180);
    if let Some((name, _)) = columns.iter().find(|(_, kind)| *kind == Kind::Text)
        && random.one_in(3)
    {
        client.run(&format!("UPDATE t SET {name} = REPEAT('wide', 20000) WHERE id IN (7, 33)"));
    }
    Table { columns, ids: 180 }
}

/// Returns a statement with `{where}`, and its condition, which may be empty.
fn statement(random: &mut Random, table: &Table) -> (String, String) {
    let name = |random: &mut Random| table.columns[random.below(table.columns.len())].0.clone();
    let first = random.below(table.ids);
    let condition = match random.below(5) {
        0 => String::new(),
        1 => format!("id IN ({first}, {}, {}, 5000)", random.below(table.ids), random.below(table.ids)),
        2 => format!("id >= {first}"),
        3 => format!("id = {first}"),
        _ => format!("id BETWEEN {first} AND {}", first + random.below(100)),
    };
    let mut items: Vec<String> = (0..random.below(3) + 1).map(|_| name(random)).collect();
    let mut order: Vec<String> = (0..random.below(3)).map(|_| name(random)).collect();
    let mut head = "";
    if random.one_in(3) {
        let of = ["COUNT(*)", "COUNT(#)", "SUM(#)", "AVG(#)", "MIN(#)", "MAX(#)", "MAX(id)", "SUM(id)", "#"];
        items = items.iter().map(|item| random.of(&of).replace('#', item)).collect();
        order.clear();
    } else if random.one_in(3) {
        head = "DISTINCT ";
        order = items.clone();
        order.rotate_left(1);
    }
    if random.one_in(6) {
        items.push(name(random));
        head = "SQL_CALC_FOUND_ROWS ";
    }
    let order: Vec<String> = order.into_iter().map(|key| key + random.of(&["", " DESC"])).collect();
    let order = if order.is_empty() { String::new() } else { format!(" ORDER BY {}", order.join(", ")) };
    let limit = match random.below(4) {
        0 => format!(" LIMIT {}", random.below(40)),
        1 => format!(" LIMIT {}, {}", random.below(20), random.below(40)),
        _ => String::new(),
    };
    (format!("SELECT {head}{} FROM t WHERE {{where}}{order}{limit}", items.join(", ")), condition)
}

#[test]
fn rows_as_they_are_stored_are_the_rows_by_values() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok("SET sql_mode = '', max_session_mem_used = 100000000, time_zone = '+02:00'");
    let mut random = Random(20);
    let (mut stored, mut all) = (0, 0);
    for round in 0..24 {
        let table = table(&mut client, &mut random, round);
        for n in 0..60 {
            let (sql, condition) = statement(&mut random, &table);
            let format = random.of(&[RowFormat::Text, RowFormat::Binary]);
            let results = random.of(&RESULTS).map(|name| Collation::by_name(name).expect("known"));
            let asked = Asked { format, results };
            client.ok(&format!("SET sql_select_limit = {}", if n % 9 == 0 { "7" } else { "DEFAULT" }));
            let plain = if condition.is_empty() { "TRUE" } else { &condition };
            let fast = answer(&mut client, &sql.replace("{where}", plain), asked);
            let slow = format!("{plain} AND id * 1 = id");
            let slow = answer(&mut client, &sql.replace("{where}", &slow), asked);
            assert_eq!(slow.stored, 0, "values were asked for: {sql}");
            assert!(fast.bytes == slow.bytes, "round {round}: {sql} where {plain}, {asked:?}");
            assert_eq!(fast.counts, slow.counts, "round {round}: {sql} where {plain}");
            stored += usize::from(fast.stored > 0);
            all += 1;
        }
    }
    assert!(stored * 3 > all, "{stored} of {all} statements went as they are stored");
}

/// More rows than a batch of the engine, and than a sort with LIMIT keeps.
#[test]
fn long_sorts_are_cut() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok("CREATE TABLE t (id INT PRIMARY KEY, c VARCHAR(60), k INT)");
    for first in (0..12_000).step_by(1000) {
        let row = |n: usize| format!("({n}, CONCAT('prefix of all ', {} % 977), {})", n * 7919, n * 31 % 64);
        let rows: Vec<String> = (first..first + 1000).map(row).collect();
        client.ok(&format!("INSERT INTO t VALUES {}", rows.join(", ")));
    }
    for (head, tail) in [
        ("c, id", "ORDER BY c, k DESC LIMIT 3, 900"),
        ("DISTINCT c", "ORDER BY c DESC LIMIT 700"),
        ("DISTINCT k, c", "ORDER BY c, k"),
        ("id", "ORDER BY k LIMIT 1200"),
    ] {
        let asked = Asked { format: RowFormat::Text, results: None };
        let mut run = |more: &str| {
            let sql = |most| format!("SELECT {head} FROM t WHERE id BETWEEN 1 AND {most}{more} {tail}");
            // The cached plan was made for few rows.
            client.ok(&sql(5));
            answer(&mut client, &sql(100_000_000), asked)
        };
        let (fast, slow) = (run(""), run(" AND id * 1 = id"));
        assert!(fast.stored > 600 && slow.stored == 0, "{head} {tail}: {} {}", fast.stored, slow.stored);
        assert!(fast.bytes == slow.bytes, "{head} {tail}");
        assert_eq!(fast.counts, slow.counts, "{head} {tail}");
    }
}

/// The memory of a sort is charged to the session, and the time limit ends the statement.
#[test]
fn sorts_of_stored_rows_are_charged() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok("CREATE TABLE t (id INT PRIMARY KEY, c VARCHAR(1000))");
    for first in (0..20_000).step_by(1000) {
        let rows: Vec<String> =
            (first..first + 1000).map(|n| format!("({n}, RPAD({n}, 900, '.'))")).collect();
        client.ok(&format!("INSERT INTO t VALUES {}", rows.join(", ")));
    }
    let sql = "SELECT c FROM t WHERE id BETWEEN ? AND ? ORDER BY c DESC";
    let id = client.session.prepare(sql.as_bytes()).expect("prepares").id;
    client.execute(id, &[Value::Int(1), Value::Int(5)]);
    client.ok("SET max_session_mem_used = 8192000");
    let answer = client.execute(id, &[Value::Int(1), Value::Int(19_000)]);
    assert!(answer.starts_with("ERROR 1290"), "{}", &answer[..answer.len().min(100)]);
    assert_eq!(client.execute(id, &[Value::Int(1), Value::Int(500)]).lines().count(), 501);
}
