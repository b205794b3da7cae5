//! Status variables of a QUERY event: the session settings that a statement depends on.
//!
//! A sequence of `code u8 | value`, written in this order:
//!
//! ```text
//!   0 flags2 u32              bits: auto_is_null, foreign_key_checks, unique_checks, autocommit, ...
//!   1 sql_mode u64
//!   6 catalog len8 string     "std"
//!   3 auto_increment u16 increment, u16 offset
//!   4 charset u16 client, u16 connection collation, u16 server collation
//!   5 time zone len8 string
//!   7 lc_time_names u16       locale number
//!   8 charset_database u16
//!   9 table_map_for_update u64
//!  11 invoker len8 user, len8 host
//! 128 hrnow u24               microseconds of NOW()
//! 129 xid u64                 of the DDL log
//! 130 gtid_flags3 u8          of a two-phase ALTER; with COMMIT or ROLLBACK ALTER (4, 8): u64 of its start
//! ```
//!
//! An unknown code ends the decoding; the rest is kept undecoded.

use cohort_base::{Reader, Truncated, Write};

use super::{DecodeError, gtid_flags_extra};

/// Session settings of a statement. Absent ones have their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusVars {
    /// OPTION_... bits: 0x4000 sql_auto_is_null, 0x8000 not autocommit, 0x400_0000 no foreign key checks,
    /// 0x800_0000 relaxed unique checks.
    pub flags2: Option<u32>,
    /// MariaDB's sql_mode bits.
    pub sql_mode: Option<u64>,
    /// Always "std".
    pub catalog: Option<Vec<u8>>,
    /// Increment and offset.
    pub auto_increment: Option<(u16, u16)>,
    /// Collation numbers: client, connection, server.
    pub charset: Option<[u16; 3]>,
    /// `@@time_zone`
    pub time_zone: Option<Vec<u8>>,
    /// Number of the locale of `@@lc_time_names`.
    pub lc_time_names: Option<u16>,
    /// Collation number of the current database.
    pub charset_database: Option<u16>,
    /// Bitmap of the tables of a multi-table UPDATE.
    pub table_map_for_update: Option<u64>,
    /// User and host for DEFINER=CURRENT_USER.
    pub invoker: Option<(Vec<u8>, Vec<u8>)>,
    /// Microseconds of NOW().
    pub hrnow: Option<u32>,
    /// XID of a DDL.
    pub xid: Option<u64>,
    /// `flags_extra` of the GTID of a two-phase ALTER; for its end also the sequence number of its start.
    pub gtid_flags3: Option<(u8, Option<u64>)>,
    /// Undecoded variables, from the first unknown one on.
    pub rest: Vec<u8>,
}

impl StatusVars {
    /// Decodes a block of status variables.
    pub fn decode(bytes: &[u8]) -> Result<StatusVars, DecodeError> {
        let mut vars = StatusVars::default();
        let mut r = Reader::new(bytes);
        while !r.is_empty() {
            let before = r.rest();
            if !vars.decode_one(&mut r)? {
                vars.rest = before.to_vec();
                break;
            }
        }
        Ok(vars)
    }

    fn decode_one(&mut self, r: &mut Reader<'_>) -> Result<bool, Truncated> {
        match r.u8()? {
            0 => self.flags2 = Some(r.u32()?),
            1 => self.sql_mode = Some(r.u64()?),
            3 => self.auto_increment = Some((r.u16()?, r.u16()?)),
            4 => self.charset = Some([r.u16()?, r.u16()?, r.u16()?]),
            5 => self.time_zone = Some(r.len8_bytes()?.to_vec()),
            6 => self.catalog = Some(r.len8_bytes()?.to_vec()),
            7 => self.lc_time_names = Some(r.u16()?),
            8 => self.charset_database = Some(r.u16()?),
            9 => self.table_map_for_update = Some(r.u64()?),
            11 => self.invoker = Some((r.len8_bytes()?.to_vec(), r.len8_bytes()?.to_vec())),
            128 => self.hrnow = Some(r.u24()?),
            129 => self.xid = Some(r.u64()?),
            130 => {
                let flags = r.u8()?;
                let ends = flags & (gtid_flags_extra::COMMIT_ALTER | gtid_flags_extra::ROLLBACK_ALTER) != 0;
                self.gtid_flags3 = Some((flags, if ends { Some(r.u64()?) } else { None }));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Appends the block in MariaDB's order.
    pub fn encode(&self, out: &mut Vec<u8>) {
        fn len8(out: &mut Vec<u8>, bytes: &[u8]) {
            out.put_u8(bytes.len() as u8);
            out.extend_from_slice(bytes);
        }
        let code = |out: &mut Vec<u8>, code: u8| out.put_u8(code);
        if let Some(flags2) = self.flags2 {
            code(out, 0);
            out.put_u32(flags2);
        }
        if let Some(sql_mode) = self.sql_mode {
            code(out, 1);
            out.put_u64(sql_mode);
        }
        if let Some(catalog) = &self.catalog {
            code(out, 6);
            len8(out, catalog);
        }
        if let Some((increment, offset)) = self.auto_increment {
            code(out, 3);
            out.put_u16(increment);
            out.put_u16(offset);
        }
        if let Some(charset) = self.charset {
            code(out, 4);
            charset.iter().for_each(|&collation| out.put_u16(collation));
        }
        if let Some(time_zone) = &self.time_zone {
            code(out, 5);
            len8(out, time_zone);
        }
        self.encode_rare(out);
        out.extend_from_slice(&self.rest);
    }

    fn encode_rare(&self, out: &mut Vec<u8>) {
        if let Some(number) = self.lc_time_names {
            out.put_u8(7);
            out.put_u16(number);
        }
        if let Some(collation) = self.charset_database {
            out.put_u8(8);
            out.put_u16(collation);
        }
        if let Some(tables) = self.table_map_for_update {
            out.put_u8(9);
            out.put_u64(tables);
        }
        if let Some((user, host)) = &self.invoker {
            out.put_u8(11);
            for part in [user, host] {
                out.put_u8(part.len() as u8);
                out.extend_from_slice(part);
            }
        }
        if let Some(hrnow) = self.hrnow {
            out.put_u8(128);
            out.put_u24(hrnow);
        }
        if let Some(xid) = self.xid {
            out.put_u8(129);
            out.put_u64(xid);
        }
        if let Some((flags, start)) = self.gtid_flags3 {
            out.put_u8(130);
            out.put_u8(flags);
            if let Some(seq_no) = start {
                out.put_u64(seq_no);
            }
        }
    }
}
