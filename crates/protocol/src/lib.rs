//! The MySQL client/server protocol: decodes commands and encodes results. No sockets, no threads.
//!
//! | module | concept |
//! |---|---|
//! | `packet` | [`InputBuffer`]: reads packets from a byte stream; [`PacketWriter`]: writes packets |
//! | `compressed` | [`Compressor`], [`Decompressor`]: frames of the compressed protocol |
//! | `capability` | [`Capabilities`]: capabilities negotiated between client and server |
//! | `handshake` | [`Greeting`], [`HandshakeResponse`], [`ChangeUser`]: the start of a connection |
//! | `auth` | [`Scramble`], [`NativePassword`]: mysql_native_password |
//! | `ed25519` | [`Nonce`], [`Ed25519Key`]: ed25519 |
//! | `proof` | [`certificate_proof`]: proof that a certificate is the server's own |
//! | `client` | the client side, for a replica that logs in at its source |
//! | `command` | [`Command`]: a client's command |
//! | `sink` | [`ResultSink`]: receives the results of a statement; the interface of executor and connection |
//! | `column_meta` | [`ColumnMeta`]: definition of a result column |
//! | `result_writer` | [`ResultWriter`]: a [`ResultSink`] that writes packets |
//! | `text_row`, `binary_row` | the two row formats |
//! | `stored_row` | the two row formats, encoded directly from stored rows |
//! | `params` | [`StatementParams`]: parameters of COM_STMT_EXECUTE |
//!
//! Every decoder accepts untrusted bytes: it returns [`Malformed`] instead of panicking, and never allocates
//! memory for a length that the peer merely claims.

mod auth;
mod binary_row;
mod capability;
mod client;
mod column_meta;
mod command;
mod compressed;
mod ed25519;
mod handshake;
mod packet;
mod params;
mod proof;
mod result_writer;
mod sink;
mod stored_row;
mod text_row;

pub use auth::{NATIVE_PASSWORD, NativePassword, Scramble};
pub use capability::Capabilities;
pub use client::{
    LoginRequest, Reply, ServerError, ServerGreeting, register_replica, request_dump, text_row,
};
pub use column_meta::{ColumnFlags, ColumnMeta, TypeCode};
pub use command::{BinlogDump, Command, RegisterReplica};
pub use compressed::{Compressor, Decompressor};
pub use ed25519::{CLIENT_ED25519, ED25519, Ed25519Key, Nonce};
pub use handshake::{Challenge, ChangeUser, Greeting, HandshakeResponse, auth_switch_request};
pub use packet::{InputBuffer, Packet, PacketError, PacketWriter};
pub use params::{ParamRows, ParamText, Parameter, StatementParams};
pub use proof::certificate_proof;
pub use result_writer::{
    Drain, ListedColumn, PreparedReply, ResultEncoding, ResultWriter, RowFormat, write_error, write_ok,
};
pub use sink::{NullSink, OkInfo, ResultHead, ResultSink, SessionChange, StatusFlags};

/// The bytes are not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Malformed communication packet")
    }
}

impl std::error::Error for Malformed {}

impl From<cohort_base::Truncated> for Malformed {
    fn from(_: cohort_base::Truncated) -> Malformed {
        Malformed
    }
}
