//! What differs between the servers' languages: MySQL's protocol and SQL, and PostgreSQL's.

use crate::postgres;
use crate::wire::{self, COM_QUERY, Reply, Types, Value};

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    MySql,
    Postgres,
}

impl Dialect {
    /// Appends a statement of the text protocol; `write` appends its text.
    pub fn query(self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        match self {
            Dialect::MySql => wire::command(COM_QUERY, out, write),
            Dialect::Postgres => postgres::query(out, write),
        }
    }

    /// Appends the execution of a prepared statement.
    pub fn execute(self, statement: u32, values: &[Value], types: Types, out: &mut Vec<u8>) {
        match self {
            Dialect::MySql => wire::execute(statement, values, types, out),
            Dialect::Postgres => postgres::execute(statement, values, out),
        }
    }

    /// A workload's statement with `{t}`, the number of a table, and `{auto}`, the value that asks for the
    /// next number of a column, filled in.
    pub fn statement(self, sql: &str, table: u32) -> String {
        let auto = match self {
            Dialect::MySql => "0",
            Dialect::Postgres => "DEFAULT",
        };
        sql.replace("{t}", &table.to_string()).replace("{auto}", auto)
    }
}

/// Follows one connection's replies.
pub enum Replies {
    MySql(wire::ReplyReader),
    Postgres(postgres::ReplyReader),
}

impl Replies {
    pub fn new(dialect: Dialect) -> Replies {
        match dialect {
            Dialect::MySql => Replies::MySql(wire::ReplyReader::default()),
            Dialect::Postgres => Replies::Postgres(postgres::ReplyReader::default()),
        }
    }

    /// Takes what is whole from the front of `input`, up to the end of a reply; the reply if it has ended.
    pub fn take(&mut self, input: &mut &[u8]) -> Option<Reply> {
        match self {
            Replies::MySql(reader) => {
                while let Some((payload, size)) = wire::next_packet(input) {
                    let reply = reader.take(payload);
                    *input = &input[size..];
                    if reply.is_some() {
                        return reply;
                    }
                }
            }
            Replies::Postgres(reader) => {
                while let Some((tag, body, size)) = postgres::next_message(input) {
                    let reply = reader.take(tag, body);
                    *input = &input[size..];
                    if reply.is_some() {
                        return reply;
                    }
                }
            }
        }
        None
    }
}
