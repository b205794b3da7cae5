//! Row images of edge values of every type, byte for byte as MariaDB 10.11 logs them. `row_images.tsv`
//! contains a column type, a value and the image of a row with this column only, which starts with the NULL
//! bitmap; `-` if the value is refused. Long images are stored as length and CRC-32.
//!
//! A replica finds a row of a table without a key by all its bytes, so a row image that differs from
//! MariaDB's is a row that the replica cannot find.

mod world;

use std::path::Path;

use cohort_binlog::EventReader;
use cohort_binlog::event::Event;
use world::Server;

#[test]
fn row_images_are_mariadbs() {
    let disk = world::disk();
    let mut server = Server::open(&disk).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok("SET sql_mode = '', time_zone = '+00:00'");
    let golden = include_str!("row_images.tsv");
    let mut refused = Vec::new();
    for line in golden.lines() {
        let [ty, value, _] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        client.ok("DROP TABLE IF EXISTS img");
        client.ok(&format!("CREATE TABLE img (v {ty})"));
        let answer = client.run(&format!("INSERT INTO img VALUES ({value})"));
        refused.push(answer.starts_with("ERROR"));
    }
    let mut images = images(&server, &disk).into_iter();
    let mut wrong = Vec::new();
    for (line, refused) in golden.lines().zip(refused) {
        let expected = line.rsplit('\t').next().expect("three fields");
        let image = if refused { "-".to_owned() } else { images.next().expect("a row each") };
        if image != expected {
            wrong.push(format!("{line}\n    here {image}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

fn images(server: &Server, disk: &cohort_vfs::SharedFs) -> Vec<String> {
    let mut found = Vec::new();
    for path in server.binlog() {
        let mut reader = EventReader::open(disk, Path::new(&path)).expect("a binlog file opens");
        while let Some(raw) = reader.next_event().expect("it is sound") {
            if let Ok(Event::Rows(rows)) = reader.decode(&raw) {
                found.push(shown(&rows.plain_rows().expect("not compressed")));
            }
        }
    }
    found
}

fn shown(image: &[u8]) -> String {
    if image.len() > 100 {
        return format!("crc32:{:08x}:{}", crc32fast::hash(image), image.len());
    }
    image.iter().map(|byte| format!("{byte:02x}")).collect()
}
