//! Commands of a client: packets with sequence number 0, whose first byte is the command.

use cohort_base::Reader;

use crate::Malformed;

/// COM_BINLOG_DUMP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinlogDump<'a> {
    /// Offset in the file.
    pub position: u32,
    /// Bit 1: stop at the end of the log. Bit 2: send annotate events.
    pub flags: u16,
    pub server_id: u32,
    pub file: &'a [u8],
}

/// COM_REGISTER_SLAVE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterReplica<'a> {
    pub server_id: u32,
    pub host: &'a [u8],
    pub user: &'a [u8],
    pub password: &'a [u8],
    pub port: u16,
}

/// A command. Byte strings are undecoded, in the client's character set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    Quit,
    /// USE.
    InitDb(&'a [u8]),
    Query(&'a [u8]),
    FieldList {
        table: &'a [u8],
        wildcard: &'a [u8],
    },
    /// FLUSH; the bits select what to flush.
    Refresh(u8),
    Shutdown,
    Statistics,
    ProcessInfo,
    ProcessKill(u32),
    Debug,
    Ping,
    /// Decoded with [`crate::ChangeUser::decode`], which needs the connection's capabilities.
    ChangeUser(&'a [u8]),
    BinlogDump(BinlogDump<'a>),
    RegisterReplica(RegisterReplica<'a>),
    StmtPrepare(&'a [u8]),
    /// `rest` is decoded with [`crate::StatementParams`], which knows the number of parameters.
    StmtExecute {
        /// `u32::MAX` refers to the statement prepared last.
        statement: u32,
        /// Requested cursor type.
        cursor: u8,
        rest: &'a [u8],
    },
    /// `rest` is decoded with [`crate::StatementParams::decode_rows`].
    StmtBulkExecute {
        /// `u32::MAX` refers to the statement prepared last.
        statement: u32,
        /// Bit 128: types follow.
        flags: u16,
        rest: &'a [u8],
    },
    StmtSendLongData {
        statement: u32,
        param: u16,
        data: &'a [u8],
    },
    StmtClose(u32),
    StmtReset(u32),
    StmtFetch {
        statement: u32,
        rows: u32,
    },
    /// Enables (0) or disables (1) multi-statements.
    SetOption(u16),
    ResetConnection,
    /// An unknown or unsupported command: error 1047.
    Unknown(u8),
}

const CHANGE_USER: u8 = 17;

impl<'a> Command<'a> {
    /// Returns whether an account with an expired password may use the command: it runs a statement, which is
    /// checked separately, or it reveals nothing.
    pub fn is_free_of_password(&self) -> bool {
        matches!(
            self,
            Command::Quit
                | Command::Ping
                | Command::Query(_)
                | Command::StmtPrepare(_)
                | Command::StmtExecute { .. }
                | Command::StmtSendLongData { .. }
                | Command::StmtClose(_)
        )
    }

    /// Returns whether the payload is a [`Command::ChangeUser`], without decoding the rest.
    pub fn is_change_user(payload: &[u8]) -> bool {
        payload.first() == Some(&CHANGE_USER)
    }

    /// Decodes a payload.
    pub fn decode(payload: &'a [u8]) -> Result<Command<'a>, Malformed> {
        let mut r = Reader::new(payload);
        let code = r.u8()?;
        let rest = r.rest();
        Ok(match code {
            1 => Command::Quit,
            2 => Command::InitDb(without_nul(rest)),
            3 => Command::Query(without_nuls(rest)),
            4 => Command::FieldList { table: r.nul_bytes()?, wildcard: without_nul(r.rest()) },
            7 => Command::Refresh(r.u8()?),
            8 => Command::Shutdown,
            9 => Command::Statistics,
            10 => Command::ProcessInfo,
            12 => Command::ProcessKill(r.u32()?),
            13 => Command::Debug,
            14 => Command::Ping,
            CHANGE_USER => Command::ChangeUser(rest),
            18 => Command::BinlogDump(BinlogDump {
                position: r.u32()?,
                flags: r.u16()?,
                server_id: r.u32()?,
                file: without_nul(r.rest()),
            }),
            21 => Command::RegisterReplica(RegisterReplica {
                server_id: r.u32()?,
                host: r.len8_bytes()?,
                user: r.len8_bytes()?,
                password: r.len8_bytes()?,
                port: r.u16()?,
            }),
            22 => Command::StmtPrepare(without_nuls(rest)),
            23 => {
                let (statement, cursor) = (r.u32()?, r.u8()?);
                // The iteration count is always 1.
                r.u32()?;
                Command::StmtExecute { statement, cursor, rest: r.rest() }
            }
            24 => Command::StmtSendLongData { statement: r.u32()?, param: r.u16()?, data: r.rest() },
            25 => Command::StmtClose(r.u32()?),
            26 => Command::StmtReset(r.u32()?),
            27 => Command::SetOption(r.u16()?),
            28 => Command::StmtFetch { statement: r.u32()?, rows: r.u32()? },
            31 => Command::ResetConnection,
            250 => Command::StmtBulkExecute { statement: r.u32()?, flags: r.u16()?, rest: r.rest() },
            other => Command::Unknown(other),
        })
    }

    /// Returns whether the client waits for a reply.
    pub fn is_answered(&self) -> bool {
        !matches!(self, Command::Quit | Command::StmtClose(_) | Command::StmtSendLongData { .. })
    }
}

/// Removes trailing zero bytes: some tools count a C string's terminator in the statement length.
fn without_nuls(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &text[..end]
}

fn without_nul(text: &[u8]) -> &[u8] {
    text.strip_suffix(&[0]).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_and_short_ones_refused() {
        assert_eq!(Command::decode(b"\x03SELECT 1"), Ok(Command::Query(b"SELECT 1")));
        assert_eq!(Command::decode(b"\x03SELECT 1\0"), Ok(Command::Query(b"SELECT 1")));
        assert_eq!(Command::decode(b"\x02shop"), Ok(Command::InitDb(b"shop")));
        assert_eq!(
            Command::decode(b"\x17\x01\0\0\0\0\x01\0\0\0ab"),
            Ok(Command::StmtExecute { statement: 1, cursor: 0, rest: b"ab" })
        );
        assert_eq!(Command::decode(b"\xfb"), Ok(Command::Unknown(0xfb)));
        assert_eq!(
            Command::decode(b"\xfa\x02\0\0\0\x80\0ab"),
            Ok(Command::StmtBulkExecute { statement: 2, flags: 128, rest: b"ab" })
        );
        for short in [
            &b""[..],
            b"\xfa\x01",
            b"\x17\x01\0",
            b"\x19\x01",
            b"\x04no end",
            b"\x12\0\0",
            b"\x1b\x01",
            b"\x0c",
        ] {
            assert_eq!(Command::decode(short), Err(Malformed), "{short:?}");
        }
    }
}
