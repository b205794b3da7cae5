//! Little-endian integers, length-encoded integers (MySQL's `lenenc`) and byte strings.
//!
//! Reading never panics: every method returns [`Truncated`] if the input ends too early, so that a decoder of
//! untrusted bytes is a chain of `?`.
//!
//! A `lenenc` integer below 0xfb is one byte with the value; larger ones are 0xfc + u16, 0xfd + u24 or 0xfe +
//! u64. The bytes 0xfb (NULL) and 0xff (error) do not start an integer.

use std::fmt;

/// The input ends inside a field, or a field starts with an invalid byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated;

impl fmt::Display for Truncated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the input ends inside a field")
    }
}

impl std::error::Error for Truncated {}

/// A cursor over untrusted bytes.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Returns a reader at the first byte.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// Returns the bytes not read yet.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the number of bytes not read yet.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Returns whether all bytes have been read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads `n` bytes.
    #[inline]
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], Truncated> {
        let (head, tail) = self.rest.split_at_checked(n).ok_or(Truncated)?;
        self.rest = tail;
        Ok(head)
    }

    /// Reads `N` bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(Truncated)?;
        self.rest = tail;
        Ok(*head)
    }

    /// Reads one byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Truncated> {
        Ok(self.array::<1>()?[0])
    }

    /// Reads two bytes, little-endian.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Truncated> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Reads three bytes, little-endian.
    #[inline]
    pub fn u24(&mut self) -> Result<u32, Truncated> {
        let [a, b, c] = self.array()?;
        Ok(u32::from_le_bytes([a, b, c, 0]))
    }

    /// Reads four bytes, little-endian.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Truncated> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Reads six bytes, little-endian.
    #[inline]
    pub fn u48(&mut self) -> Result<u64, Truncated> {
        let [a, b, c, d, e, f] = self.array()?;
        Ok(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]))
    }

    /// Reads eight bytes, little-endian.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Truncated> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads a `lenenc` integer.
    pub fn lenenc(&mut self) -> Result<u64, Truncated> {
        match self.u8()? {
            0xfc => Ok(u64::from(self.u16()?)),
            0xfd => Ok(u64::from(self.u24()?)),
            0xfe => self.u64(),
            0xfb | 0xff => Err(Truncated),
            small => Ok(u64::from(small)),
        }
    }

    /// Reads a string after its `lenenc` length.
    pub fn lenenc_bytes(&mut self) -> Result<&'a [u8], Truncated> {
        let len = usize::try_from(self.lenenc()?).map_err(|_| Truncated)?;
        self.bytes(len)
    }

    /// Reads a string after its length in one byte.
    pub fn len8_bytes(&mut self) -> Result<&'a [u8], Truncated> {
        let len = usize::from(self.u8()?);
        self.bytes(len)
    }

    /// Reads a string up to the next zero byte and skips that byte.
    pub fn nul_bytes(&mut self) -> Result<&'a [u8], Truncated> {
        let end = self.rest.iter().position(|&b| b == 0).ok_or(Truncated)?;
        let text = self.bytes(end)?;
        self.bytes(1)?;
        Ok(text)
    }
}

/// Appends to a byte vector the fields that [`Reader`] reads.
pub trait Write {
    /// Appends one byte.
    fn put_u8(&mut self, v: u8);
    /// Appends two bytes, little-endian.
    fn put_u16(&mut self, v: u16);
    /// Appends the low three bytes, little-endian.
    fn put_u24(&mut self, v: u32);
    /// Appends four bytes, little-endian.
    fn put_u32(&mut self, v: u32);
    /// Appends the low six bytes, little-endian.
    fn put_u48(&mut self, v: u64);
    /// Appends eight bytes, little-endian.
    fn put_u64(&mut self, v: u64);
    /// Appends a `lenenc` integer in its shortest form.
    fn put_lenenc(&mut self, v: u64);
    /// Appends a string after its `lenenc` length.
    fn put_lenenc_bytes(&mut self, v: &[u8]);
}

impl Write for Vec<u8> {
    #[inline]
    fn put_u8(&mut self, v: u8) {
        self.push(v);
    }

    #[inline]
    fn put_u16(&mut self, v: u16) {
        self.extend_from_slice(&v.to_le_bytes());
    }

    #[inline]
    fn put_u24(&mut self, v: u32) {
        self.extend_from_slice(&v.to_le_bytes()[..3]);
    }

    #[inline]
    fn put_u32(&mut self, v: u32) {
        self.extend_from_slice(&v.to_le_bytes());
    }

    #[inline]
    fn put_u48(&mut self, v: u64) {
        self.extend_from_slice(&v.to_le_bytes()[..6]);
    }

    #[inline]
    fn put_u64(&mut self, v: u64) {
        self.extend_from_slice(&v.to_le_bytes());
    }

    #[inline]
    fn put_lenenc(&mut self, v: u64) {
        match v {
            0..=0xfa => self.push(v as u8),
            0xfb..=0xffff => {
                self.push(0xfc);
                self.put_u16(v as u16);
            }
            0x1_0000..=0xff_ffff => {
                self.push(0xfd);
                self.put_u24(v as u32);
            }
            _ => {
                self.push(0xfe);
                self.put_u64(v);
            }
        }
    }

    #[inline]
    fn put_lenenc_bytes(&mut self, v: &[u8]) {
        self.put_lenenc(v.len() as u64);
        self.extend_from_slice(v);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lenenc_takes_the_shortest_form_and_round_trips() {
        for (value, len) in
            [(0, 1), (0xfa, 1), (0xfb, 3), (0xffff, 3), (0x1_0000, 4), (0xff_ffff, 4), (0x100_0000, 9)]
        {
            let mut bytes = Vec::new();
            bytes.put_lenenc(value);
            assert_eq!(bytes.len(), len, "{value:#x}");
            assert_eq!(Reader::new(&bytes).lenenc(), Ok(value));
            assert_eq!(Reader::new(&bytes[..len - 1]).lenenc(), Err(Truncated));
        }
        assert_eq!(Reader::new(&[0xfb]).lenenc(), Err(Truncated), "NULL is no integer");
    }

    #[test]
    fn fields_end_where_the_input_ends() {
        let mut r = Reader::new(b"\x03abc\x01\x02");
        assert_eq!(r.len8_bytes(), Ok(&b"abc"[..]));
        assert_eq!(r.u24(), Err(Truncated));
        assert_eq!(r.u16(), Ok(0x0201));
        assert!(r.is_empty());
        assert_eq!(Reader::new(b"no end").nul_bytes(), Err(Truncated));
        assert_eq!(Reader::new(b"\x09short").lenenc_bytes(), Err(Truncated));
    }
}
