//! XA RECOVER.

use cohort_binlog::event::XaXid;
use cohort_commit::XaListed;
use cohort_types::{ColumnType, TypeKind, Value};

use super::listing::Listing;

/// Display width of the numbers, and maximum bytes of a name as text.
const DIGITS: u32 = 11;
const DATA_BYTES: u32 = 2 * 128 + 18;

/// Returns the prepared branches.
pub fn xa_recover(listed: &[XaListed], sql_format: bool) -> Listing {
    let number = ColumnType::int(TypeKind::Int, Some(DIGITS), false);
    let mut listing = Listing::default();
    for name in ["formatID", "gtrid_length", "bqual_length"] {
        listing.column(name, number.clone(), false);
    }
    listing.text("data", DATA_BYTES);
    for branch in listed {
        let xid = &branch.body.head().xid;
        let length = |part: &[u8]| Value::Int(part.len() as i64);
        listing.add([
            Value::Int(i64::from(xid.format_id)),
            length(&xid.gtrid),
            length(&xid.bqual),
            Value::binary(data(xid, sql_format)),
        ]);
    }
    listing
}

/// Returns the column `data` of XA RECOVER.
fn data(xid: &XaXid, sql_format: bool) -> Vec<u8> {
    if !sql_format {
        return [&*xid.gtrid, &*xid.bqual].concat();
    }
    let is_plain =
        |part: &[u8]| part.iter().all(|byte| (0x20..0x7f).contains(byte) && !b"'\\".contains(byte));
    let part = |part: &[u8], text: &mut Vec<u8>, plain: bool| match plain {
        true => {
            text.push(b'\'');
            text.extend_from_slice(part);
            text.push(b'\'');
        }
        false => {
            text.extend_from_slice(b"X'");
            part.iter().for_each(|byte| text.extend_from_slice(format!("{byte:02x}").as_bytes()));
            text.push(b'\'');
        }
    };
    let mut text = Vec::new();
    let plain = is_plain(&xid.gtrid) && is_plain(&xid.bqual);
    part(&xid.gtrid, &mut text, plain);
    if !xid.bqual.is_empty() || xid.format_id != 1 {
        text.push(b',');
        part(&xid.bqual, &mut text, plain);
    }
    if xid.format_id != 1 {
        text.extend_from_slice(format!(",{}", xid.format_id).as_bytes());
    }
    text
}
