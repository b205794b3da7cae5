//! Differences between the servers' protocols and SQL: MySQL and PostgreSQL.

use crate::postgres;
use crate::wire::{self, COM_QUERY, Reply, Types, Value};

/// Protocol and SQL dialect of a server.
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

    /// Returns a workload's statement with its placeholders replaced: `{t}` by the table number, `{auto}` by
    /// the value that requests the next number of a column.
    pub fn statement(self, sql: &str, table: u32) -> String {
        let auto = match self {
            Dialect::MySql => "0",
            Dialect::Postgres => "DEFAULT",
        };
        sql.replace("{t}", &table.to_string()).replace("{auto}", auto)
    }
}

/// Parser of one connection's replies.
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

    /// Consumes complete messages from the front of `input`, up to the end of a reply. Returns the reply if
    /// it has ended.
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
