//! Pieces of the binary log's byte stream and where they belong in the files.
//!
//! A commit record carries the chunk list of its transaction in front of the bytes:
//!
//! ```text
//! lenenc count
//! per chunk:  u32 file | u64 offset | lenenc length | u8 content
//!             content 0: the next `length` bytes of the record's stream bytes
//!             content 1: lenenc-string spill name | u64 events | u64 event_bytes | u8 checksum algorithm
//! ```

use cohort_base::{BinlogPos, Reader, Truncated, Write};

use crate::event::Checksum;

/// A run of bytes at one place of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Where the first byte belongs.
    pub pos: BinlogPos,
    /// Number of bytes in the file.
    pub len: u64,
    /// Where the bytes are.
    pub content: Content,
}

/// Where the bytes of a chunk come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The next `len` bytes of [`StreamOut::bytes`].
    Inline,
    /// The body of a large transaction, in a spill file.
    Spilled(SpilledChunk),
}

/// A spill file as a chunk refers to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpilledChunk {
    /// File name inside the spill directory.
    pub name: String,
    /// Number of events in it.
    pub events: u64,
    /// Their length without checksums.
    pub event_bytes: u64,
    /// Whether the events get checksums in the binlog file.
    pub checksum: Checksum,
}

impl Chunk {
    /// The position behind the last byte.
    pub fn end(&self) -> BinlogPos {
        BinlogPos { file: self.pos.file, offset: self.pos.offset + self.len }
    }
}

/// Bytes of the stream together with their places, in order. Reused from group to group.
#[derive(Clone, Debug, Default)]
pub struct StreamOut {
    /// The bytes of all inline chunks, one after the other.
    pub bytes: Vec<u8>,
    /// Where they belong.
    pub chunks: Vec<Chunk>,
}

impl StreamOut {
    /// Forgets the contents, keeps the room.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.chunks.clear();
    }

    /// Notes that the bytes behind `from` in `bytes` belong at `pos`; joins them to the chunk before if they
    /// follow it.
    pub(crate) fn place(&mut self, pos: BinlogPos, from: usize) {
        let len = (self.bytes.len() - from) as u64;
        match self.chunks.last_mut() {
            Some(last) if last.content == Content::Inline && last.end() == pos => last.len += len,
            _ => self.chunks.push(Chunk { pos, len, content: Content::Inline }),
        }
    }

    /// Writes the chunk list in the form that commit records carry.
    pub fn encode_chunks(chunks: &[Chunk], out: &mut Vec<u8>) {
        out.put_lenenc(chunks.len() as u64);
        for chunk in chunks {
            out.put_u32(chunk.pos.file);
            out.put_u64(chunk.pos.offset);
            out.put_lenenc(chunk.len);
            match &chunk.content {
                Content::Inline => out.put_u8(0),
                Content::Spilled(spilled) => {
                    out.put_u8(1);
                    out.put_lenenc_bytes(spilled.name.as_bytes());
                    out.put_u64(spilled.events);
                    out.put_u64(spilled.event_bytes);
                    out.put_u8(spilled.checksum as u8);
                }
            }
        }
    }

    /// Reads what [`StreamOut::encode_chunks`] wrote.
    pub fn decode_chunks(r: &mut Reader<'_>) -> Result<Vec<Chunk>, Truncated> {
        let count = r.lenenc()?;
        let mut chunks = Vec::new();
        for _ in 0..count {
            let pos = BinlogPos { file: r.u32()?, offset: r.u64()? };
            let len = r.lenenc()?;
            let content = match r.u8()? {
                0 => Content::Inline,
                1 => Content::Spilled(SpilledChunk {
                    name: String::from_utf8(r.lenenc_bytes()?.to_vec()).map_err(|_| Truncated)?,
                    events: r.u64()?,
                    event_bytes: r.u64()?,
                    checksum: Checksum::from_u8(r.u8()?).ok_or(Truncated)?,
                }),
                _ => return Err(Truncated),
            };
            chunks.push(Chunk { pos, len, content });
        }
        Ok(chunks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_lists_round_trip_and_neighbours_join() {
        let mut out = StreamOut::default();
        out.bytes.extend_from_slice(b"abc");
        out.place(BinlogPos { file: 1, offset: 100 }, 0);
        out.bytes.extend_from_slice(b"de");
        out.place(BinlogPos { file: 1, offset: 103 }, 3);
        out.bytes.extend_from_slice(b"f");
        out.place(BinlogPos { file: 2, offset: 0 }, 5);
        assert_eq!(
            out.chunks.iter().map(|c| (c.pos.file, c.pos.offset, c.len)).collect::<Vec<_>>(),
            [(1, 100, 5), (2, 0, 1)]
        );
        out.chunks.push(Chunk {
            pos: BinlogPos { file: 2, offset: 1 },
            len: 70_000,
            content: Content::Spilled(SpilledChunk {
                name: "spill-7".into(),
                events: 12,
                event_bytes: 69_952,
                checksum: Checksum::Crc32,
            }),
        });
        let mut bytes = Vec::new();
        StreamOut::encode_chunks(&out.chunks, &mut bytes);
        let mut r = Reader::new(&bytes);
        assert_eq!(StreamOut::decode_chunks(&mut r), Ok(out.chunks));
        assert!(r.is_empty());
        for cut in 0..bytes.len() {
            assert!(StreamOut::decode_chunks(&mut Reader::new(&bytes[..cut])).is_err());
        }
    }
}
