//! A small server around the binlog: transactions, a log that never fails, checkpoints.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::{BinlogPos, DomainId, Gtid, ServerId, Xid};
use cohort_binlog::event::{RowsKind, TableMap, gtid_flags2};
use cohort_binlog::{
    Batch, BinlogError, BinlogFileWriter, BinlogFileWriterOptions, BinlogFiles, BinlogName, CacheError,
    CacheOptions, Checksum, Content, CopyPlace, GtidHead, GtidState, OpenOptions, Recovered, RowImage,
    SpillDir, Stamp, Stream, StreamOptions, StreamOut, TrxCache, VerifyScope,
};
use cohort_vfs::SharedFs;

pub const DIR: &str = "/d";

pub fn name() -> BinlogName {
    BinlogName::new(Path::new(DIR), "binlog")
}

pub fn path(number: u32) -> PathBuf {
    name().path(number)
}

pub fn stream_options() -> StreamOptions {
    StreamOptions {
        name: name(),
        file_bytes_max: 4000,
        server_id: ServerId(7),
        server_version: "10.11.99-MariaDB-cohort-log".to_owned(),
        checksum: Checksum::Crc32,
    }
}

pub fn spill_dir(fs: &SharedFs) -> std::io::Result<Arc<SpillDir>> {
    Ok(Arc::new(SpillDir::open(fs.clone(), Path::new("/d/spill"))?))
}

/// Contents of the log: every durable batch since the start, and the last checkpoint.
#[derive(Clone, Default)]
pub struct Log {
    pub batches: Vec<Batch>,
    pub end: Option<BinlogPos>,
    pub gtid_state: GtidState,
    /// Position and number of batches up to which the files were synced.
    pub checkpoint: (BinlogPos, usize),
    /// Expected contents of each file, from the chunks.
    pub model: BTreeMap<u32, Vec<u8>>,
}

#[derive(Debug)]
pub enum Stop {
    Binlog(BinlogError),
    Cache(CacheError),
    Io(std::io::Error),
}

impl From<BinlogError> for Stop {
    fn from(err: BinlogError) -> Stop {
        Stop::Binlog(err)
    }
}

impl From<CacheError> for Stop {
    fn from(err: CacheError) -> Stop {
        Stop::Cache(err)
    }
}

impl From<std::io::Error> for Stop {
    fn from(err: std::io::Error) -> Stop {
        Stop::Io(err)
    }
}

impl Log {
    /// Makes a stream's output durable and hands it to the files.
    pub fn flush(&mut self, out: &mut StreamOut, spill: &SpillDir, stream: &Stream) -> Batch {
        let batch = Batch { chunks: std::mem::take(&mut out.chunks), bytes: std::mem::take(&mut out.bytes) };
        let mut inline = batch.bytes.as_slice();
        for chunk in &batch.chunks {
            let file = self.model.entry(chunk.pos.file).or_default();
            assert_eq!(file.len() as u64, chunk.pos.offset, "the stream has no holes");
            match &chunk.content {
                Content::Inline => {
                    let (bytes, rest) = inline.split_at(chunk.len as usize);
                    file.extend_from_slice(bytes);
                    inline = rest;
                }
                Content::Spilled(spilled) => {
                    let mut take = |_: u64, bytes: &[u8]| {
                        file.extend_from_slice(bytes);
                        Ok(())
                    };
                    spill
                        .copy_spilled(
                            spilled,
                            chunk.pos.offset,
                            &mut CopyPlace::default(),
                            u64::MAX,
                            &mut take,
                        )
                        .expect("sealed files can be read");
                }
            }
        }
        self.end = Some(stream.position());
        self.gtid_state = stream.gtid_state().clone();
        self.batches.push(batch.clone());
        batch
    }
}

/// A running server.
pub struct Server {
    pub stream: Stream,
    pub files: Arc<BinlogFileWriter>,
    pub spill: Arc<SpillDir>,
    pub cache: TrxCache,
    pub out: StreamOut,
    next: u64,
}

/// Opens the files, completes them from the log, and starts a new file.
pub fn start(fs: &SharedFs, log: &mut Log) -> Result<Server, Stop> {
    let spill = spill_dir(fs)?;
    let (files, recovered) = recover(fs, log, &spill)?;
    let mut out = StreamOut::default();
    let state = recovered.gtid_state;
    assert_eq!(state, log.gtid_state);
    let stream = Stream::open_new(stream_options(), files.next_number(), state, 1000, &mut out);
    let batch = log.flush(&mut out, &spill, &stream);
    let files = Arc::new(BinlogFileWriter::stepped(files, spill.clone(), BinlogFileWriterOptions::default()));
    files.submit(batch);
    let options = CacheOptions { memory_bytes_max: 600, ..CacheOptions::default() };
    let cache = TrxCache::new(options, Some(spill.clone()));
    Ok(Server {
        stream,
        files,
        spill,
        cache,
        out,
        next: log.gtid_state.next(DomainId(0), ServerId(7)).seq_no,
    })
}

pub fn recover(fs: &SharedFs, log: &Log, spill: &SpillDir) -> Result<(BinlogFiles, Recovered), Stop> {
    let options = OpenOptions { verify: VerifyScope::Tail, synced_to: log.checkpoint.0 };
    let (mut files, opened) = BinlogFiles::open(fs.clone(), name(), options)?;
    for batch in &log.batches[log.checkpoint.1..] {
        let mut inline = batch.bytes.as_slice();
        for chunk in &batch.chunks {
            files.apply(chunk, &mut inline, spill)?;
        }
    }
    let recovered = files.finish_recovery(log.end, &opened)?;
    Ok((files, recovered))
}

impl Server {
    /// Commits a transaction with this number of rows.
    pub fn transaction(&mut self, log: &mut Log, rows: u32) -> Result<(), Stop> {
        let stamp = Stamp { timestamp: 1000, server_id: ServerId(7), flags: 0 };
        self.cache.begin_statement(stamp, Some(b"insert into t1 ..."));
        self.cache.table_map(&Arc::new(TableMap {
            table_id: 18,
            flags: 1,
            db: b"test".to_vec(),
            table: b"t1".to_vec(),
            column_types: vec![3, 3],
            metadata: vec![],
            null_bits: vec![0],
            optional: vec![],
        }));
        for number in 0..rows {
            let image = [&[0xfc], &number.to_le_bytes()[..], &number.to_le_bytes()[..]].concat();
            let row = RowImage {
                kind: RowsKind::Write,
                flags: 0,
                present: &[0xff],
                present_after: &[],
                image: &image,
            };
            self.cache.row(18, &row)?;
        }
        self.cache.end_statement()?;
        let body = self.cache.seal()?;
        let head = GtidHead {
            gtid: Gtid { domain: DomainId(0), server: ServerId(7), seq_no: self.next },
            commit_id: None,
            flags2: gtid_flags2::TRANSACTIONAL | gtid_flags2::ALLOW_PARALLEL,
            xid: None,
            flags: 0,
            timestamp: 1000,
        };
        self.stream.append_trx(&mut self.out, &head, &body, Some(Xid(self.next)));
        self.next += 1;
        if self.stream.wants_rotation() {
            self.stream.rotate(&mut self.out, 1000);
        }
        let batch = log.flush(&mut self.out, &self.spill, &self.stream);
        self.files.submit(batch);
        Ok(())
    }

    pub fn checkpoint(&mut self, log: &mut Log) -> Result<(), Stop> {
        if let Some(synced) = self.files.sync()? {
            log.checkpoint = (synced, log.batches.len());
        }
        Ok(())
    }

    pub fn stop(mut self, log: &mut Log) -> Result<(), Stop> {
        self.stream.stop(&mut self.out, 1000);
        let batch = log.flush(&mut self.out, &self.spill, &self.stream);
        self.files.submit(batch);
        self.files.close()?;
        Ok(())
    }
}

pub fn read_file(fs: &SharedFs, path: &Path) -> Vec<u8> {
    let file = fs.open(path, cohort_vfs::OpenMode::Read).expect("opens");
    let mut bytes = vec![0; file.len().expect("has a length") as usize];
    file.read_at(&mut bytes, 0).expect("reads");
    bytes
}

/// Checks that the files have exactly the contents of the log and that the index names all of them.
pub fn check_files(fs: &SharedFs, log: &Log) {
    let last = log.model.keys().last().copied();
    for (&number, expected) in &log.model {
        let mut expected = expected.clone();
        let found = read_file(fs, &path(number));
        if Some(number) != last {
            expected[21] &= !1;
        } else {
            expected[21] = found[21];
        }
        assert!(
            found == expected,
            "file {number} differs ({} bytes, {} expected)",
            found.len(),
            expected.len()
        );
    }
    let index = String::from_utf8(read_file(fs, &name().index_path())).expect("text");
    let expected: String = log.model.keys().map(|&number| format!("./binlog.{number:06}\n")).collect();
    assert_eq!(index, expected);
}

/// Returns the number of binlog files in the directory, regardless of the index.
pub fn binlog_files_in_dir(fs: &SharedFs) -> usize {
    let names = fs.list(Path::new(DIR)).expect("lists");
    names.iter().filter(|file| name().number(&file.to_string_lossy()).is_some()).count()
}
