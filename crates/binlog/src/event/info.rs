//! The column Info of SHOW BINLOG EVENTS, as printed by MariaDB 10.11.

use super::xa::{Case, push_hex};
use super::{
    DecodeError, Event, EventHeader, GtidEvent, IntvarKind, QueryEvent, RowsEvent, UserVar, UserVarType,
    flags, gtid_flags_extra, gtid_flags2, rows_flags,
};

impl Event {
    /// Returns the text. Returns bytes, because statements may be in any character set.
    pub fn info(&self, header: &EventHeader) -> Result<Vec<u8>, DecodeError> {
        Ok(match self {
            Event::FormatDescription(e) => {
                [b"Server ver: ", e.server_version.as_slice(), b", Binlog ver: 4"].concat()
            }
            Event::GtidList(e) => {
                // Sorted by domain, server and number; the order in the event has another meaning.
                let mut gtids = e.gtids.clone();
                gtids.sort();
                let gtids: Vec<String> = gtids.iter().map(ToString::to_string).collect();
                format!("[{}]", gtids.join(",")).into_bytes()
            }
            Event::BinlogCheckpoint(e) => e.name.clone(),
            Event::Gtid(e) => gtid_info(e, header).into_bytes(),
            Event::Query(e) => query_info(e, header)?,
            Event::Xid(xid) => format!("COMMIT /* xid={xid} */").into_bytes(),
            Event::XaPrepare(e) => {
                let verb = if e.one_phase != 0 { "COMMIT" } else { "PREPARE" };
                let end = if e.one_phase != 0 { " ONE PHASE" } else { "" };
                format!("XA {verb} {}{end}", e.xid.to_sql()).into_bytes()
            }
            Event::Rotate(e) => [e.name.as_slice(), format!(";pos={}", e.position).as_bytes()].concat(),
            Event::Intvar(e) => match e.kind {
                IntvarKind::LastInsertId => format!("LAST_INSERT_ID={}", e.value).into_bytes(),
                IntvarKind::InsertId => format!("INSERT_ID={}", e.value).into_bytes(),
            },
            Event::Rand(e) => format!("rand_seed1={},rand_seed2={}", e.seed1, e.seed2).into_bytes(),
            Event::UserVar(e) => user_var_info(e)?,
            Event::Incident(e) => incident_info(e.number, &e.message),
            Event::Annotate(e) => e.sql.clone(),
            Event::TableMap(e) => {
                [format!("table_id: {} (", e.table_id).as_bytes(), &e.db, b".", &e.table, b")"].concat()
            }
            Event::Rows(e) => rows_info(e).into_bytes(),
            Event::BeginLoadQuery(e) | Event::AppendBlock(e) => {
                format!(";file_id={};block_len={}", e.file_id, e.block.len()).into_bytes()
            }
            Event::DeleteFile(number) => format!(";file_id={number}").into_bytes(),
            Event::ExecuteLoadQuery(e) => {
                let end = format!(" ;file_id={}", e.file_id);
                [query_info(&e.query, header)?.as_slice(), end.as_bytes()].concat()
            }
            Event::Stop | Event::Heartbeat(_) | Event::StartEncryption(_) | Event::Unknown(..) => Vec::new(),
        })
    }
}

fn gtid_info(e: &GtidEvent, header: &EventHeader) -> String {
    let mut text = String::new();
    if e.flags2 & gtid_flags2::PREPARED_XA != 0 {
        text.push_str("XA START ");
        text.push_str(&e.xid.as_ref().map(|xid| xid.to_sql()).unwrap_or_default());
        text.push_str(" GTID ");
    } else if e.flags2 & gtid_flags2::STANDALONE == 0 {
        text.push_str("BEGIN GTID ");
    } else {
        text.push_str("GTID ");
    }
    text.push_str(&e.gtid(header.server_id).to_string());
    if let Some(commit_id) = e.commit_id {
        text.push_str(&format!(" cid={commit_id}"));
    }
    if e.flags_extra & gtid_flags_extra::START_ALTER != 0 {
        text.push_str(" START ALTER");
    } else if e.flags_extra & gtid_flags_extra::COMMIT_ALTER != 0 {
        text.push_str(&format!(" COMMIT ALTER id={}", e.start_seq_no));
    } else if e.flags_extra & gtid_flags_extra::ROLLBACK_ALTER != 0 {
        text.push_str(&format!(" ROLLBACK ALTER id={}", e.start_seq_no));
    }
    text
}

fn query_info(e: &QueryEvent, header: &EventHeader) -> Result<Vec<u8>, DecodeError> {
    let mut text = Vec::new();
    if header.flags & flags::SUPPRESS_USE == 0 && !e.db.is_empty() {
        text.extend_from_slice(b"use `");
        push_quoted(&mut text, &e.db);
        text.extend_from_slice(b"`; ");
    }
    text.extend_from_slice(&e.plain_sql()?);
    Ok(text)
}

fn push_quoted(text: &mut Vec<u8>, name: &[u8]) {
    for &byte in name {
        if byte == b'`' {
            text.push(byte);
        }
        text.push(byte);
    }
}

fn rows_info(e: &RowsEvent) -> String {
    let end = if e.flags & rows_flags::STMT_END != 0 { " flags: STMT_END_F" } else { "" };
    format!("table_id: {}{end}", e.table_id)
}

fn incident_info(number: u16, message: &[u8]) -> Vec<u8> {
    let name = match number {
        1 => "LOST_EVENTS",
        _ => "NONE",
    };
    let mut text = format!("#{number} ({name})").into_bytes();
    if !message.is_empty() {
        text.extend_from_slice(b": ");
        text.extend_from_slice(message);
    }
    text
}

fn user_var_info(e: &UserVar) -> Result<Vec<u8>, DecodeError> {
    let mut text = b"@`".to_vec();
    push_quoted(&mut text, &e.name);
    text.extend_from_slice(b"`=");
    let Some(value) = &e.value else {
        text.extend_from_slice(b"NULL");
        return Ok(text);
    };
    let eight = || <[u8; 8]>::try_from(value.bytes.as_slice()).map_err(|_| DecodeError::Truncated);
    let shown = match value.kind {
        UserVarType::Real => real_text(f64::from_le_bytes(eight()?)),
        UserVarType::Int if value.flags == Some(1) => u64::from_le_bytes(eight()?).to_string(),
        UserVarType::Int => i64::from_le_bytes(eight()?).to_string(),
        UserVarType::Decimal => decimal_text(&value.bytes)?,
        UserVarType::String => string_text(value.collation, &value.bytes),
    };
    text.extend_from_slice(shown.as_bytes());
    Ok(text)
}

/// Returns the shortest text of at most 14 digits, like C's `%.14g`.
fn real_text(value: f64) -> String {
    const DIGITS: i32 = 14;
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let scientific = format!("{value:.*e}", DIGITS as usize - 1);
    let (mantissa, exponent) = scientific.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..DIGITS).contains(&exponent) {
        return trim(&format!("{value:.*}", (DIGITS - 1 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
}

fn string_text(collation: u32, bytes: &[u8]) -> String {
    let Some((charset, collation)) = collation_names(collation) else {
        return "???".to_owned();
    };
    let mut text = format!("_{charset} X'");
    push_hex(&mut text, bytes, Case::Upper);
    text.push_str(&format!("' COLLATE {collation}"));
    text
}

/// Returns the name of a collation that a variable can have here. Others print as unknown, as on a server
/// that lacks them.
fn collation_names(number: u32) -> Option<(&'static str, &'static str)> {
    Some(match number {
        8 => ("latin1", "latin1_swedish_ci"),
        11 => ("ascii", "ascii_general_ci"),
        33 => ("utf8mb3", "utf8mb3_general_ci"),
        45 => ("utf8mb4", "utf8mb4_general_ci"),
        46 => ("utf8mb4", "utf8mb4_bin"),
        47 => ("latin1", "latin1_bin"),
        63 => ("binary", "binary"),
        65 => ("ascii", "ascii_bin"),
        83 => ("utf8mb3", "utf8mb3_bin"),
        224 => ("utf8mb4", "utf8mb4_unicode_ci"),
        _ => return None,
    })
}

/// Formats the packed form of a decimal. Groups of nine digits take four bytes, big-endian; the leading and
/// the trailing group may be shorter. The first bit is inverted; for a negative number all bits are.
fn decimal_text(bytes: &[u8]) -> Result<String, DecodeError> {
    const GROUP_BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
    let [precision, scale, digits @ ..] = bytes else { return Err(DecodeError::Truncated) };
    let (scale, precision) = (usize::from(*scale), usize::from(*precision));
    let whole = precision.checked_sub(scale).ok_or(DecodeError::BadValue("decimal scale above precision"))?;
    let first = *digits.first().ok_or(DecodeError::Truncated)?;
    let negative = first & 0x80 == 0;
    let mut at = 0;
    let mut group = |count: usize| -> Result<String, DecodeError> {
        let part = digits.get(at..at + GROUP_BYTES[count]).ok_or(DecodeError::Truncated)?;
        let mut value = 0u64;
        for (i, &byte) in part.iter().enumerate() {
            let byte = if at + i == 0 { byte ^ 0x80 } else { byte };
            value = value << 8 | u64::from(if negative { !byte } else { byte });
        }
        at += part.len();
        Ok(format!("{value:0count$}"))
    };
    let mut text = String::new();
    if whole % 9 != 0 {
        text.push_str(&group(whole % 9)?);
    }
    for _ in 0..whole / 9 {
        text.push_str(&group(9)?);
    }
    let mut shown = text.trim_start_matches('0').to_owned();
    if shown.is_empty() {
        shown.push('0');
    }
    if scale > 0 {
        shown.push('.');
        for _ in 0..scale / 9 {
            shown.push_str(&group(9)?);
        }
        if scale % 9 != 0 {
            shown.push_str(&group(scale % 9)?);
        }
    }
    Ok(if negative { format!("-{shown}") } else { shown })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reals_print_as_c_does() {
        for (value, text) in [
            (1.5, "1.5"),
            (0.1, "0.1"),
            (100.0, "100"),
            (1e20, "1e+20"),
            (1.25e-7, "1.25e-07"),
            (-0.0001, "-0.0001"),
            (123456789012345.0, "1.2345678901234e+14"),
        ] {
            assert_eq!(real_text(value), text);
        }
    }

    #[test]
    fn decimals_print_with_sign_and_groups() {
        assert_eq!(decimal_text(&[3, 2, 0x81, 25]).as_deref(), Ok("1.25"));
        assert_eq!(decimal_text(&[3, 2, !0x81, !25]).as_deref(), Ok("-1.25"));
        let long = [14, 4, 0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2];
        assert_eq!(decimal_text(&long).as_deref(), Ok("1234567890.1234"));
        for cut in 0..long.len() {
            assert!(decimal_text(&long[..cut]).is_err());
        }
    }
}
