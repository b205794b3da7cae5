//! A source sends events that are well-formed with correct checksums, but wrong: omitted, sent twice,
//! reordered, or with impossible contents. The replica must stop there, with an error number and a position,
//! and must contain only whole transactions.

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use support::{Cohort, Maria, wait_until};

const GTID: u8 = 162;
const XID: u8 = 16;
const TABLE_MAP: u8 = 19;
const WRITE_ROWS: u8 = 23;
const WRITE_ROWS_COMPRESSED: u8 = 166;
const HEADER: usize = 19;

/// The manipulation of one event of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forgery {
    Drop(u8),
    Twice(u8),
    /// Sent after the next event.
    Late(u8),
    /// The last byte before the checksum is missing.
    Short(u8),
    /// Random bytes after the header.
    Nonsense(u8),
    /// An unknown event type.
    Unknown(u8),
    /// Rows of a table without a table map.
    OtherTable,
    /// A wrong length in the header.
    WrongLength(u8),
    /// Claims to be an event that this server added to its own relay log.
    FromRelayLog(u8),
    /// Compressed rows that claim to decompress to a gigabyte.
    Bomb,
}

impl Forgery {
    fn kind(self) -> u8 {
        use Forgery::*;
        match self {
            Drop(kind) | Twice(kind) | Late(kind) | Short(kind) | Nonsense(kind) | Unknown(kind)
            | WrongLength(kind) | FromRelayLog(kind) => kind,
            OtherTable | Bomb => WRITE_ROWS,
        }
    }

    /// Returns the events to send in place of one. `late` receives the events to send after the next one.
    fn of(self, event: &[u8], late: &mut Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let mut forged = event.to_vec();
        let end = event.len() - 4;
        match self {
            Forgery::Drop(_) => return Vec::new(),
            Forgery::Twice(_) => return vec![event.to_vec(), event.to_vec()],
            Forgery::Late(_) => {
                late.push(forged);
                return Vec::new();
            }
            Forgery::Short(_) => drop(forged.remove(end - 1)),
            Forgery::Nonsense(_) => forged[HEADER..end].iter_mut().for_each(|byte| *byte = 0xfb),
            Forgery::Unknown(_) => forged[4] = 200,
            Forgery::OtherTable => forged[HEADER] ^= 0x55,
            Forgery::WrongLength(_) => {}
            Forgery::FromRelayLog(_) => forged[17] |= 0x40,
            Forgery::Bomb => {
                forged[4] = WRITE_ROWS_COMPRESSED;
                // After the table id, the flags, and the bitmap of the two columns.
                forged.truncate(HEADER + 10);
                forged.extend_from_slice(&[0x84, 0x7f, 0xff, 0xff, 0xff]);
                // Only the beginning of the compressed data; the checksum's place.
                forged.extend_from_slice(&[0x78, 0x9c, 0, 0, 0, 0]);
            }
        }
        let mut length = forged.len() as u32;
        if matches!(self, Forgery::WrongLength(_)) {
            length += 7;
        }
        forged[9..13].copy_from_slice(&length.to_le_bytes());
        let body = forged.len() - 4;
        let crc = cohort_binlog::event::crc_of_event(&forged[..body]);
        forged[body..].copy_from_slice(&crc.to_le_bytes());
        vec![forged]
    }
}

/// A proxy to a source that forges the n-th transaction of a dump.
struct Forger {
    port: u16,
    /// The number of transactions that pass first. A value out of reach disables forging.
    at: Arc<AtomicUsize>,
}

impl Forger {
    fn new(source: u16, forgery: Forgery) -> Forger {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let at = Arc::new(AtomicUsize::new(3));
        let shared = Arc::clone(&at);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(("127.0.0.1", source))) else {
                    return;
                };
                for side in [&client, &server] {
                    side.set_nodelay(true).expect("a socket");
                }
                let (mut from, mut to) =
                    (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
                let at = Arc::clone(&shared);
                std::thread::spawn(move || {
                    let end = client.try_clone().expect("a socket");
                    let _ = forge(server, client, forgery, &at);
                    let _ = end.shutdown(Shutdown::Both);
                });
            }
        });
        Forger { port, at }
    }
}

fn packet(from: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 4];
    from.read_exact(&mut head).ok()?;
    let mut payload = vec![0; usize::from(head[0]) | usize::from(head[1]) << 8 | usize::from(head[2]) << 16];
    from.read_exact(&mut payload).ok()?;
    Some((head[3], payload))
}

fn send(to: &mut TcpStream, number: u8, payload: &[u8]) -> Option<()> {
    let length = (payload.len() as u32).to_le_bytes();
    to.write_all(&[&length[..3], &[number], payload].concat()).ok()
}

fn forge(mut server: TcpStream, mut client: TcpStream, forgery: Forgery, at: &AtomicUsize) -> Option<()> {
    let (mut transactions, mut late) = (0, Vec::new());
    loop {
        let (number, payload) = packet(&mut server)?;
        let is_event = payload.len() > HEADER + 5
            && payload[0] == 0
            && payload[10..14] == ((payload.len() - 1) as u32).to_le_bytes();
        if !is_event {
            send(&mut client, number, &payload)?;
            continue;
        }
        let event = &payload[1..];
        transactions += usize::from(event[4] == GTID);
        let delayed = std::mem::take(&mut late);
        let events = match transactions == at.load(Ordering::Relaxed) && event[4] == forgery.kind() {
            true => forgery.of(event, &mut late),
            false => vec![event.to_vec()],
        };
        for event in events.iter().chain(&delayed) {
            send(&mut client, number, &[&[0], event.as_slice()].concat())?;
        }
    }
}

#[test]
fn events_that_are_wrong_stop_a_replica_between_transactions() {
    let forgeries = [
        Forgery::Drop(GTID),
        Forgery::Drop(TABLE_MAP),
        Forgery::Drop(XID),
        Forgery::Twice(GTID),
        Forgery::Twice(WRITE_ROWS),
        Forgery::Late(GTID),
        Forgery::Late(TABLE_MAP),
        Forgery::Late(XID),
        Forgery::Short(TABLE_MAP),
        Forgery::Short(WRITE_ROWS),
        Forgery::Short(XID),
        Forgery::Nonsense(GTID),
        Forgery::Nonsense(TABLE_MAP),
        Forgery::Nonsense(WRITE_ROWS),
        Forgery::Unknown(TABLE_MAP),
        Forgery::Unknown(WRITE_ROWS),
        Forgery::Unknown(XID),
        Forgery::OtherTable,
        Forgery::WrongLength(WRITE_ROWS),
        Forgery::FromRelayLog(WRITE_ROWS),
        Forgery::Bomb,
    ];
    let source = Maria::source(&["--binlog-format=ROW"]);
    source.sql("CREATE TABLE test.t (a INT PRIMARY KEY, n INT)");
    // Two rows per transaction, in two events.
    let transaction = |n: usize| {
        format!(
            "BEGIN; INSERT INTO test.t VALUES ({}, {n}); INSERT INTO test.t VALUES ({}, {n}); COMMIT",
            2 * n,
            2 * n + 1
        )
    };
    source.sql(&(1..6).map(transaction).collect::<Vec<_>>().join("; "));
    let end = source.gtid_end();
    for threads in ["--slave-parallel-threads=0", "--slave-parallel-threads=3"] {
        let replica = Cohort::new(&["--log-slave-updates", "--server-id=7", threads]);
        for forgery in forgeries {
            let what = format!("{forgery:?} {threads}");
            replica.sql("STOP SLAVE; RESET SLAVE ALL; DROP TABLE IF EXISTS test.t; SET GLOBAL gtid_slave_pos = ''; RESET MASTER");
            let forger = Forger::new(source.port, forgery);
            replica.sql(&format!(
                "CHANGE MASTER TO master_host='127.0.0.1', master_port={}, master_user='root', master_connect_retry=1, \
                 master_use_gtid=slave_pos; START SLAVE",
                forger.port
            ));
            wait_until(&format!("{what}: it goes on"), || {
                let status = replica.replica_status();
                status.contains("Slave_SQL_Running: No") || status.contains("Slave_IO_Running: No")
            });
            // Transactions before the forgery are applied completely, and nothing of the forged one.
            wait_until(&format!("{what}: what is whole is not applied"), || {
                replica.sql("SELECT @@gtid_slave_pos") == "0-2-2"
            });
            let numbers = (replica.replica_field("Last_IO_Errno"), replica.replica_field("Last_SQL_Errno"));
            let texts = (replica.replica_field("Last_IO_Error"), replica.replica_field("Last_SQL_Error"));
            let known = ["1594", "1595", "1610", "1062"];
            // Refused by the declared size, before decompression.
            let known = if forgery == Forgery::Bomb { &["1153"][..] } else { &known };
            assert!(
                known.contains(&numbers.0.as_str()) || known.contains(&numbers.1.as_str()),
                "{what}: {numbers:?} {texts:?}"
            );
            let groups = replica
                .sql("SELECT COUNT(*) FROM (SELECT n FROM test.t GROUP BY n HAVING COUNT(*) <> 2) AS x");
            assert_eq!(groups, "0", "{what}: a transaction is there in part, {numbers:?} {texts:?}");
            assert_eq!(replica.sql("SELECT COUNT(*) FROM test.t"), "2", "{what}: {numbers:?} {texts:?}");
            // With an unmodified source, replication continues where it stopped.
            forger.at.store(usize::MAX, Ordering::Relaxed);
            replica.sql("STOP SLAVE; START SLAVE");
            replica.wait_for(&end);
            let rows = "SELECT a, n FROM test.t ORDER BY a";
            assert_eq!(replica.sql(rows), source.sql(rows), "{what}");
        }
    }
}
