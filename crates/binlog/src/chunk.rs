//! Pieces of the binary log's byte stream, and their places in the files.
//!
//! A commit record contains the chunk list of its transaction before the bytes:

use cohort_base::{BinlogPos, Reader, Truncated, Write};

use crate::event::Checksum;

/// A run of bytes at one place of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Position of the first byte.
    pub pos: BinlogPos,
    /// Number of bytes in the file.
    pub len: u64,
    /// Source of the bytes.
    pub content: Content,
}

/// Source of the bytes of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The next `len` bytes of [`StreamOut::bytes`].
    Inline,
    /// The body of a large transaction, in a spill file.
    Spilled(SpilledChunk),
}

/// Reference of a chunk to a spill file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpilledChunk {
    /// File name inside the spill directory.
    pub name: String,
    /// Number of events in the file.
    pub events: u64,
    /// Bytes of the events without checksums.
    pub event_bytes: u64,
    /// Checksum algorithm of the events in the binlog file.
    pub checksum: Checksum,
}

impl Chunk {
    /// Returns the position after the last byte.
    pub fn end(&self) -> BinlogPos {
        BinlogPos { file: self.pos.file, offset: self.pos.offset + self.len }
    }
}

/// Bytes of the stream with their places, in order. Reused from group to group.
#[derive(Clone, Debug, Default)]
pub struct StreamOut {
    /// Bytes of all inline chunks, concatenated.
    pub bytes: Vec<u8>,
    /// Places of the bytes.
    pub chunks: Vec<Chunk>,
}

impl StreamOut {
    /// Removes the contents, keeps the allocated memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.chunks.clear();
    }

    /// Records that the bytes of `bytes` from `from` on belong at `pos`. Extends the last chunk if they
    /// follow it.
    pub(crate) fn place(&mut self, pos: BinlogPos, from: usize) {
        let len = (self.bytes.len() - from) as u64;
        match self.chunks.last_mut() {
            Some(last) if last.content == Content::Inline && last.end() == pos => last.len += len,
            _ => self.chunks.push(Chunk { pos, len, content: Content::Inline }),
        }
    }

    /// Encodes a chunk list as stored in commit records.
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

    /// Decodes a chunk list written by [`StreamOut::encode_chunks`].
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
