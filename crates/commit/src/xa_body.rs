//! The data that an XA PREPARE makes durable: the branch's writes, and the keys of the locks that it holds.
//!
//! ```text
//! PREPARE  u8 1 | xid | u64 wall clock in microseconds | u8 flags: 1 the binlog has its events
//!          names:  lenenc n, each u8 mode | lenenc schema | lenenc table, empty for the schema itself
//!          rows:   lenenc n, each u8 mode | u32 index | lenenc key
//!          writes: to the end, each u8 participant | u32 index | lenenc key | u8 1 | lenenc value, or u8 0: deleted
//! END      u8 2 | xid
//! xid      u32 format | lenenc gtrid | lenenc bqual
//! ```

use std::any::Any;
use std::sync::{Arc, OnceLock, Weak};

use cohort_base::{IndexId, ParticipantId, Reader, Truncated, Write};
use cohort_binlog::event::XaXid;
use cohort_engine::{Installed, Redo};
use cohort_locks::{MetadataKey, MetadataMode, RowMode};

const PREPARE: u8 = 1;
const END: u8 = 2;
const LOGGED: u8 = 1;
/// Maximum bytes of the fixed fields of an xid, with the kind of the record.
const XID_FRAME_BYTES_MAX: usize = 8;
/// Reason why decoding a body again cannot fail.
const WHOLE: &str = "looked through when it was read";

/// A write of a prepared branch. The value is `None` if the key is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XaWrite<'b> {
    pub participant: ParticipantId,
    pub index: IndexId,
    pub key: &'b [u8],
    pub value: Option<&'b [u8]>,
}

/// Builder for the redo of a PREPARE.
pub struct XaBodyBuilder {
    bytes: Vec<u8>,
    head: XaHead,
    names_at: usize,
    /// Number of rows yet to be added.
    rows_left: usize,
    /// Offset of the writes; `None` while rows are yet to be added.
    writes_at: Option<usize>,
    writes: u64,
    tops: Tops,
}

/// Description of a prepared branch, for lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XaHead {
    pub xid: XaXid,
    /// Wall clock time of the PREPARE.
    pub since_us: u64,
    /// The binlog has the events of the first phase, so it must get those of the second.
    pub is_logged: bool,
}

/// A prepared branch. Clones are cheap and refer to the same branch.
///
/// It is also the token of the PREPARE's redo: the preparing session has built it, so the order stage has
/// nothing to decode.
#[derive(Clone, Debug)]
pub struct XaBody(Arc<Inner>);

/// A weak reference to a branch.
pub(crate) struct WeakBody(Weak<Inner>);

#[derive(Debug)]
struct Inner {
    head: XaHead,
    bytes: Box<[u8]>,
    /// Offset of the locked names.
    names_at: usize,
    /// Offset of the writes.
    writes_at: usize,
    writes: u64,
    tops: Tops,
    /// The branch's own file, once a checkpoint has written it.
    file: OnceLock<BodyFile>,
}

/// A file that holds one branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyFile {
    pub number: u64,
    /// CRC-32C of the file.
    pub crc: u32,
}

/// The largest key that the branch writes, for each index.
#[derive(Debug, Default)]
struct Tops(Vec<(IndexId, Vec<u8>)>);

/// A change of the prepared branches in a commit record.
pub enum XaChange {
    Prepared(XaBody),
    Ended(XaXid),
}

impl Installed for XaBody {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Tops {
    fn note(&mut self, write: &XaWrite<'_>) {
        if write.value.is_none() {
            return;
        }
        // Writes come by index and key, so it is nearly always the last entry.
        match self.0.iter_mut().rfind(|(index, _)| *index == write.index) {
            Some((_, top)) if **top < *write.key => {
                top.clear();
                top.extend_from_slice(write.key);
            }
            Some(_) => {}
            None => self.0.push((write.index, write.key.to_vec())),
        }
    }

    fn of(&self, index: IndexId) -> Option<&[u8]> {
        self.0.iter().find(|(of, _)| *of == index).map(|(_, top)| top.as_slice())
    }
}

fn put_xid(out: &mut Vec<u8>, xid: &XaXid) {
    out.put_u32(xid.format_id);
    out.put_lenenc_bytes(&xid.gtrid);
    out.put_lenenc_bytes(&xid.bqual);
}

fn xid(r: &mut Reader<'_>) -> Result<XaXid, Truncated> {
    Ok(XaXid { format_id: r.u32()?, gtrid: r.lenenc_bytes()?.to_vec(), bqual: r.lenenc_bytes()?.to_vec() })
}

const NAME_MODES: [MetadataMode; 5] = [
    MetadataMode::SharedRead,
    MetadataMode::SharedWrite,
    MetadataMode::SharedUpgradable,
    MetadataMode::SharedNoWrite,
    MetadataMode::Exclusive,
];

/// Returns the names of a schema or table. Locks of other names are not kept after the statement that
/// prepares.
fn name_parts(name: &MetadataKey) -> Option<(&str, &str)> {
    match name {
        MetadataKey::Schema(schema) => Some((schema, "")),
        MetadataKey::Table(schema, table) => Some((schema, table)),
        _ => None,
    }
}

impl XaBodyBuilder {
    /// Begins with the names that the branch has locked. `rows` row locks must be added next, then the
    /// writes. `bytes_expected` is the approximate total size.
    pub fn new(
        head: XaHead,
        names: &[(MetadataKey, MetadataMode)],
        rows: usize,
        bytes_expected: usize,
    ) -> XaBodyBuilder {
        let mut bytes = Vec::with_capacity(bytes_expected);
        bytes.put_u8(PREPARE);
        put_xid(&mut bytes, &head.xid);
        bytes.put_u64(head.since_us);
        bytes.put_u8(if head.is_logged { LOGGED } else { 0 });
        let names_at = bytes.len();
        let held: Vec<_> = names.iter().filter_map(|(name, mode)| Some((name_parts(name)?, mode))).collect();
        bytes.put_lenenc(held.len() as u64);
        for ((schema, table), mode) in held {
            bytes.put_u8(*mode as u8);
            bytes.put_lenenc_bytes(schema.as_bytes());
            bytes.put_lenenc_bytes(table.as_bytes());
        }
        bytes.put_lenenc(rows as u64);
        XaBodyBuilder {
            bytes,
            head,
            names_at,
            rows_left: rows,
            writes_at: None,
            writes: 0,
            tops: Tops::default(),
        }
    }

    /// Adds a row lock.
    pub fn row(&mut self, index: IndexId, key: &[u8], mode: RowMode) {
        self.rows_left = self.rows_left.checked_sub(1).expect("the number of row locks was given");
        self.bytes.put_u8(mode as u8);
        self.bytes.put_u32(index.0);
        self.bytes.put_lenenc_bytes(key);
    }

    /// Returns the offset of the writes, after all rows were added.
    fn writes_at(&mut self) -> usize {
        assert_eq!(self.rows_left, 0, "the number of row locks was given");
        *self.writes_at.get_or_insert(self.bytes.len())
    }

    /// Adds a write.
    pub fn write(&mut self, write: XaWrite<'_>) {
        self.writes_at();
        self.writes += 1;
        self.tops.note(&write);
        self.bytes.put_u8(write.participant.0);
        self.bytes.put_u32(write.index.0);
        self.bytes.put_lenenc_bytes(write.key);
        match write.value {
            Some(value) => {
                self.bytes.put_u8(1);
                self.bytes.put_lenenc_bytes(value);
            }
            None => self.bytes.put_u8(0),
        }
    }

    /// Returns the number of bytes so far.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the branch, for one that has only read.
    pub fn body(mut self) -> XaBody {
        let writes_at = self.writes_at();
        XaBody(Arc::new(Inner {
            head: self.head,
            bytes: self.bytes.into(),
            names_at: self.names_at,
            writes_at,
            writes: self.writes,
            tops: self.tops,
            file: OnceLock::new(),
        }))
    }

    /// Returns the redo of the PREPARE. It contains the branch twice: as bytes for the log, and as the object
    /// that is kept.
    pub fn redo(self) -> Redo {
        let bytes = self.bytes.clone();
        Redo::installed(bytes, Arc::new(self.body()))
    }
}

/// Returns the redo of a COMMIT or ROLLBACK, an END record.
pub fn end_redo(of: &XaXid) -> Redo {
    let mut bytes = Vec::with_capacity(XID_FRAME_BYTES_MAX + of.gtrid.len() + of.bqual.len());
    bytes.put_u8(END);
    put_xid(&mut bytes, of);
    Redo::new(bytes)
}

impl XaChange {
    /// Decodes redo completely, so that an [`XaBody`] can later be walked without errors.
    pub fn decode(bytes: &[u8]) -> Result<XaChange, Truncated> {
        let mut r = Reader::new(bytes);
        match r.u8()? {
            PREPARE => Ok(XaChange::Prepared(XaBody::decode(bytes, r)?)),
            END => {
                let of = xid(&mut r)?;
                if r.is_empty() { Ok(XaChange::Ended(of)) } else { Err(Truncated) }
            }
            _ => Err(Truncated),
        }
    }
}

fn next_name(r: &mut Reader<'_>) -> Result<(MetadataKey, MetadataMode), Truncated> {
    let mode = *NAME_MODES.get(usize::from(r.u8()?)).ok_or(Truncated)?;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| Truncated);
    let (schema, table) = (text(r.lenenc_bytes()?)?, text(r.lenenc_bytes()?)?);
    let name = match table.is_empty() {
        true => MetadataKey::Schema(schema.into()),
        false => MetadataKey::Table(schema.into(), table.into()),
    };
    Ok((name, mode))
}

fn next_row<'b>(r: &mut Reader<'b>) -> Result<(IndexId, &'b [u8], RowMode), Truncated> {
    let mode = match r.u8()? {
        0 => RowMode::Shared,
        1 => RowMode::Exclusive,
        _ => return Err(Truncated),
    };
    Ok((IndexId(r.u32()?), r.lenenc_bytes()?, mode))
}

fn next_write<'b>(r: &mut Reader<'b>) -> Result<XaWrite<'b>, Truncated> {
    let (participant, index, key) = (ParticipantId(r.u8()?), IndexId(r.u32()?), r.lenenc_bytes()?);
    let value = match r.u8()? {
        0 => None,
        1 => Some(r.lenenc_bytes()?),
        _ => return Err(Truncated),
    };
    Ok(XaWrite { participant, index, key, value })
}

impl XaBody {
    fn decode(bytes: &[u8], mut r: Reader<'_>) -> Result<XaBody, Truncated> {
        let head = XaHead { xid: xid(&mut r)?, since_us: r.u64()?, is_logged: r.u8()? & LOGGED != 0 };
        let names_at = bytes.len() - r.rest().len();
        let mut r = Reader::new(&bytes[names_at..]);
        for _ in 0..r.lenenc()? {
            next_name(&mut r)?;
        }
        for _ in 0..r.lenenc()? {
            next_row(&mut r)?;
        }
        let writes_at = bytes.len() - r.rest().len();
        let (mut writes, mut tops) = (0, Tops::default());
        while !r.is_empty() {
            tops.note(&next_write(&mut r)?);
            writes += 1;
        }
        let file = OnceLock::new();
        Ok(XaBody(Arc::new(Inner { head, bytes: bytes.into(), names_at, writes_at, writes, tops, file })))
    }

    /// Returns the branch of a PREPARE's redo. Returns `None` for the redo of a COMMIT or ROLLBACK.
    pub(crate) fn of(redo: &Redo) -> Option<&XaBody> {
        redo.installation()?.as_any().downcast_ref()
    }

    /// Returns the description for lists.
    pub fn head(&self) -> &XaHead {
        &self.0.head
    }

    /// Returns the redo, as it was logged.
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// Returns the number of writes.
    pub fn writes(&self) -> u64 {
        self.0.writes
    }

    /// Returns the largest key that the branch writes into an index.
    pub fn largest_key(&self, index: IndexId) -> Option<&[u8]> {
        self.0.tops.of(index)
    }

    /// Returns the file that a checkpoint has written for the branch.
    pub(crate) fn file(&self) -> Option<BodyFile> {
        self.0.file.get().copied()
    }

    /// Stores the file that a checkpoint has written for the branch.
    pub(crate) fn set_file(&self, file: BodyFile) {
        assert!(self.0.file.set(file).is_ok(), "a branch is written once");
    }

    pub(crate) fn downgrade(&self) -> WeakBody {
        WeakBody(Arc::downgrade(&self.0))
    }

    /// Passes all contents to the callbacks: locked names and rows, then the writes. Ends at the first error.
    pub fn walk<E>(
        &self,
        name: &mut dyn FnMut(MetadataKey, MetadataMode) -> Result<(), E>,
        row: &mut dyn FnMut(IndexId, &[u8], RowMode) -> Result<(), E>,
        write: &mut dyn FnMut(XaWrite<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut r = Reader::new(&self.0.bytes[self.0.names_at..self.0.writes_at]);
        for _ in 0..r.lenenc().expect(WHOLE) {
            let (key, mode) = next_name(&mut r).expect(WHOLE);
            name(key, mode)?;
        }
        for _ in 0..r.lenenc().expect(WHOLE) {
            let (index, key, mode) = next_row(&mut r).expect(WHOLE);
            row(index, key, mode)?;
        }
        self.each_write(write)
    }

    /// Passes all writes to the callback. Ends at the first error.
    pub fn each_write<E>(&self, write: &mut dyn FnMut(XaWrite<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut r = Reader::new(&self.0.bytes[self.0.writes_at..]);
        while !r.is_empty() {
            write(next_write(&mut r).expect(WHOLE))?;
        }
        Ok(())
    }
}

impl WeakBody {
    /// Returns the branch, if it still exists.
    pub fn upgrade(&self) -> Option<XaBody> {
        self.0.upgrade().map(XaBody)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn body() -> Vec<u8> {
        let xid = XaXid { format_id: 7, gtrid: b"g".to_vec(), bqual: vec![0, 255] };
        let head = XaHead { xid, since_us: 11, is_logged: true };
        let names = [
            (MetadataKey::Global, MetadataMode::SharedWrite),
            (MetadataKey::Schema("s".into()), MetadataMode::SharedRead),
            (MetadataKey::Table("s".into(), "t".into()), MetadataMode::SharedWrite),
        ];
        let mut builder = XaBodyBuilder::new(head, &names, 1, 0);
        builder.row(IndexId(9), b"key", RowMode::Shared);
        let write = |value| XaWrite { participant: ParticipantId(2), index: IndexId(9), key: b"key", value };
        builder.write(write(Some(b"value")));
        builder.write(write(None));
        builder.redo().bytes
    }

    #[test]
    fn a_branch_comes_back_as_it_was_prepared() {
        let bytes = body();
        let Ok(XaChange::Prepared(body)) = XaChange::decode(&bytes) else { panic!("it was prepared") };
        assert_eq!((body.head().xid.format_id, body.head().since_us, body.writes()), (7, 11, 2));
        let mut seen = Vec::new();
        let seen = std::cell::RefCell::new(&mut seen);
        let note = |what: String| -> Result<(), Infallible> {
            seen.borrow_mut().push(what);
            Ok(())
        };
        let Ok(()) = body.walk(
            &mut |name, mode| note(format!("{name:?} {mode:?}")),
            &mut |index, key, mode| note(format!("{} {key:?} {mode:?}", index.0)),
            &mut |write| note(format!("{:?}", write.value)),
        );
        assert_eq!(
            seen.into_inner().join("; "),
            "Schema(\"s\") SharedRead; Table(\"s\", \"t\") SharedWrite; 9 [107, 101, 121] Shared; \
             Some([118, 97, 108, 117, 101]); None"
        );
        let Ok(XaChange::Ended(xid)) = XaChange::decode(&end_redo(&body.head().xid).bytes) else {
            panic!("it ended")
        };
        assert_eq!(xid, body.head().xid);
    }

    /// The token that the order stage takes must equal the branch that a start decodes from the log.
    #[test]
    fn the_token_of_a_prepare_is_what_its_bytes_say() {
        let head = XaHead { xid: XaXid::default(), since_us: 5, is_logged: false };
        let mut builder = XaBodyBuilder::new(head, &[], 1, 0);
        builder.row(IndexId(9), b"zz", RowMode::Exclusive);
        for (index, key, value) in
            [(8, "b", Some("v")), (9, "a", Some("v")), (9, "c", Some("v")), (9, "d", None)]
        {
            let (participant, index) = (ParticipantId(2), IndexId(index));
            let value = value.map(str::as_bytes);
            builder.write(XaWrite { participant, index, key: key.as_bytes(), value });
        }
        let redo = builder.redo();
        let Ok(XaChange::Prepared(read)) = XaChange::decode(&redo.bytes) else { panic!("it was prepared") };
        for body in [XaBody::of(&redo).expect("it is a PREPARE"), &read] {
            assert_eq!((body.head().since_us, body.writes(), body.bytes()), (5, 4, &*redo.bytes));
            let tops = [7, 8, 9].map(|index| body.largest_key(IndexId(index)));
            assert_eq!(tops, [None, Some(&b"b"[..]), Some(&b"c"[..])]);
            let mut keys = Vec::new();
            let walked: Result<(), ()> = body.each_write(&mut |write| {
                keys.extend_from_slice(write.key);
                Ok(())
            });
            assert_eq!((walked, &*keys), (Ok(()), &b"bacd"[..]));
        }
        assert!(XaBody::of(&end_redo(&XaXid::default())).is_none());
    }

    #[test]
    fn cut_and_changed_bytes_are_errors_or_another_branch() {
        let whole = body();
        let first_write = whole.len() - 2 * 10 - 7;
        for len in 0..first_write {
            assert!(XaChange::decode(&whole[..len]).is_err(), "{len}");
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut changed = whole.clone();
                changed[at] ^= 1 << bit;
                // Checks that decoding returns, and that a decoded branch can be walked.
                if let Ok(XaChange::Prepared(body)) = XaChange::decode(&changed) {
                    let walked: Result<(), ()> =
                        body.walk(&mut |_, _| Ok(()), &mut |_, _, _| Ok(()), &mut |_| Ok(()));
                    assert!(walked.is_ok());
                }
            }
        }
    }
}
