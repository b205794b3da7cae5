//! Clones a running server: the stream of its backup becomes a data directory of this machine.
//!
//! Pieces are written as they arrive; the manifest is the last file, and every file must have the length and
//! the checksum that it states. Module `target` has the steps, and the state that a failure leaves.
//!
//! For a replica the directory gets two more files: options with which its server starts ([`OPTIONS`]), and
//! statements that make it a replica of the cloned server at the position of the cut ([`STATEMENTS`]).

use std::path::Path;
use std::time::Instant;

use cohort_backup_format::{Manifest, UNFINISHED};
use cohort_clone::{Receiver, stream};

use crate::client::{Account, Client, quoted, text_of};
use crate::failure::{Failure, Result};
use crate::progress::{Pace, Progress};
use crate::target::Target;

/// Option file of a new replica.
pub const OPTIONS: &str = "cohort-replica.cnf";
/// Statements that start replication, for one execution.
pub const STATEMENTS: &str = "cohort-replica.sql";

/// The replica that is made of a clone.
#[derive(Clone, Debug)]
pub struct Replica {
    pub server_id: u32,
    /// Account of the replica on its source.
    pub user: String,
    pub password: String,
}

/// The outcome of `clone`.
#[derive(Debug)]
pub struct Cloned {
    pub manifest: Manifest,
    pub seconds: f64,
}

/// Clones a server into a directory that is new or empty.
pub fn clone(
    account: &Account,
    directory: &Path,
    replica: Option<&Replica>,
    rate: Option<u64>,
    progress: &Progress,
) -> Result<Cloned> {
    let begun = Instant::now();
    let mut client = Client::connect(account)?;
    let source = replica.map(|_| source_of(&mut client, account)).transpose()?;
    let target = Target::open(directory)?;
    let mut has_begun = false;
    let mut receiver = Receiver::new(&target);
    let mut pace = Pace::new(rate);
    stream(&mut client, None, &mut |name, offset, bytes| {
        pace.spend(bytes.len());
        progress.add(bytes.len() as u64);
        // A server that refuses the account leaves the directory empty for the next attempt.
        if !std::mem::replace(&mut has_begun, true) {
            target.begin(0)?;
        }
        receiver.add(name, offset, bytes)
    })?;
    let manifest = receiver.finish()?;
    let mut more = Vec::new();
    if let (Some(replica), Some(source)) = (replica, source) {
        target.write(OPTIONS, &options(&manifest, replica, directory)?)?;
        target.write(STATEMENTS, &statements(&manifest, replica, &source, account))?;
        more.extend([OPTIONS, STATEMENTS]);
    }
    let files = manifest.files.iter().map(|file| file.path.as_str());
    target.finish(files.chain(more).chain([UNFINISHED]))?;
    Ok(Cloned { manifest, seconds: begun.elapsed().as_secs_f64() })
}

/// Returns host and port under which a replica reaches the server. Fails if it cannot be a source.
fn source_of(client: &mut Client, account: &Account) -> Result<(String, u16)> {
    let row = client.row("SELECT @@log_bin, @@port")?;
    let [log_bin, port] = &row[..] else { return Err(Failure::Failed("a row of another form".to_owned())) };
    if text_of(log_bin) != "1" {
        let text = "the server writes no binary log, so it cannot have replicas; set log_bin";
        return Err(Failure::Refused(text.to_owned()));
    }
    if let (None, Some(host)) = (&account.socket, &account.host) {
        return Ok((host.clone(), account.port));
    }
    match text_of(port).parse() {
        Ok(port) if port > 0 => Ok(("127.0.0.1".to_owned(), port)),
        _ => Err(Failure::Refused("the server accepts no connections over the network".to_owned())),
    }
}

fn options(manifest: &Manifest, replica: &Replica, directory: &Path) -> Result<String> {
    let directory = std::path::absolute(directory).map_err(|error| Failure::of_file(directory, error))?;
    let mut text = format!(
        "# Starts the clone in this directory. Add the settings that your servers have in common.\n\
         [mariadb]\ndatadir = {}\nserver_id = {}\n\
         # The clone has the events of its source, enabled. Here they must not run as long as it is a replica.\n\
         event_scheduler = OFF\n\
         # Each server needs an archive of its own.\n\
         archive_to =\n",
        option_value(&directory.to_string_lossy()),
        replica.server_id
    );
    if !manifest.log_bin.is_empty() {
        text += &format!("log_bin = {}\n", manifest.log_bin);
    }
    if manifest.layout != "shared" {
        text += &format!("log_layout = {}\n", manifest.layout);
    }
    Ok(text)
}

/// Writes a value of an option file, in quotes if a reader would cut it.
fn option_value(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\");
    match text.contains(['#', '"', '\'']) || text.trim() != text {
        true => format!("\"{}\"", escaped.replace('"', "\\\"")),
        false => escaped,
    }
}

fn statements(
    manifest: &Manifest,
    replica: &Replica,
    (host, port): &(String, u16),
    account: &Account,
) -> String {
    let mut text = format!(
        "-- Makes the clone in this directory a replica of {host}:{port}. Run it once; the first start has\n\
         -- --skip-slave-start.\n\
         STOP ALL SLAVES;\n"
    );
    for source in &manifest.sources {
        text += &format!("RESET SLAVE {} ALL;\n", quoted(&source.connection));
    }
    text += &format!("SET GLOBAL gtid_slave_pos = {};\n", quoted(&manifest.gtid_binlog_pos));
    text += &format!("CHANGE MASTER TO MASTER_HOST = {}, MASTER_PORT = {port},\n", quoted(host));
    text += &format!("  MASTER_USER = {},", quoted(&replica.user));
    text += &format!(" MASTER_PASSWORD = {},\n", quoted(&replica.password));
    if account.demands_tls() {
        text += "  MASTER_SSL = 1,";
        if let Some(ca) = &account.ca {
            let ca = std::path::absolute(ca).unwrap_or_else(|_| ca.clone());
            text += &format!(" MASTER_SSL_CA = {},", quoted(&ca.to_string_lossy()));
        }
        let verifies = u8::from(account.ca.is_some() || account.proves_certificate);
        text += &format!(" MASTER_SSL_VERIFY_SERVER_CERT = {verifies},\n");
    }
    text + "  MASTER_USE_GTID = slave_pos;\nSTART SLAVE;\n"
}
