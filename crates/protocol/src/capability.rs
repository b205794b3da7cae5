//! Capabilities negotiated in the handshake.

/// Capability bits. The low 32 are MySQL's, the high 32 MariaDB's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// Set by MySQL, which sends no MariaDB bits; MariaDB servers omit it.
    pub const MYSQL: Capabilities = Capabilities(1);
    /// UPDATE reports found rows instead of changed rows.
    pub const FOUND_ROWS: Capabilities = Capabilities(1 << 1);
    pub const LONG_FLAG: Capabilities = Capabilities(1 << 2);
    /// The response names a database.
    pub const CONNECT_WITH_DB: Capabilities = Capabilities(1 << 3);
    pub const NO_SCHEMA: Capabilities = Capabilities(1 << 4);
    pub const COMPRESS: Capabilities = Capabilities(1 << 5);
    pub const ODBC: Capabilities = Capabilities(1 << 6);
    pub const LOCAL_FILES: Capabilities = Capabilities(1 << 7);
    pub const IGNORE_SPACE: Capabilities = Capabilities(1 << 8);
    pub const PROTOCOL_41: Capabilities = Capabilities(1 << 9);
    /// The session uses interactive_timeout instead of wait_timeout.
    pub const INTERACTIVE: Capabilities = Capabilities(1 << 10);
    pub const SSL: Capabilities = Capabilities(1 << 11);
    pub const IGNORE_SIGPIPE: Capabilities = Capabilities(1 << 12);
    pub const TRANSACTIONS: Capabilities = Capabilities(1 << 13);
    pub const RESERVED: Capabilities = Capabilities(1 << 14);
    pub const SECURE_CONNECTION: Capabilities = Capabilities(1 << 15);
    pub const MULTI_STATEMENTS: Capabilities = Capabilities(1 << 16);
    pub const MULTI_RESULTS: Capabilities = Capabilities(1 << 17);
    pub const PS_MULTI_RESULTS: Capabilities = Capabilities(1 << 18);
    pub const PLUGIN_AUTH: Capabilities = Capabilities(1 << 19);
    pub const CONNECT_ATTRS: Capabilities = Capabilities(1 << 20);
    /// The length of the authentication data is a lenenc integer.
    pub const PLUGIN_AUTH_LENENC: Capabilities = Capabilities(1 << 21);
    pub const CAN_HANDLE_EXPIRED_PASSWORDS: Capabilities = Capabilities(1 << 22);
    /// OK packets report changes of the session state.
    pub const SESSION_TRACK: Capabilities = Capabilities(1 << 23);
    /// Result sets end with an OK packet, and no EOF packet follows the columns.
    pub const DEPRECATE_EOF: Capabilities = Capabilities(1 << 24);
    pub const REMEMBER_OPTIONS: Capabilities = Capabilities(1 << 31);

    /// COM_STMT_BULK_EXECUTE: MARIADB_CLIENT_STMT_BULK_OPERATIONS.
    pub const BULK_OPERATIONS: Capabilities = Capabilities(1 << 34);
    /// Column definitions contain MariaDB's names of type and format: MARIADB_CLIENT_EXTENDED_METADATA.
    pub const EXTENDED_METADATA: Capabilities = Capabilities(1 << 35);

    /// Capabilities of this server. `SSL` is added if it has a certificate.
    pub const SERVER: Capabilities = Capabilities(
        Self::FOUND_ROWS.0
            | Self::LONG_FLAG.0
            | Self::CONNECT_WITH_DB.0
            | Self::NO_SCHEMA.0
            | Self::COMPRESS.0
            | Self::ODBC.0
            | Self::LOCAL_FILES.0
            | Self::IGNORE_SPACE.0
            | Self::PROTOCOL_41.0
            | Self::INTERACTIVE.0
            | Self::IGNORE_SIGPIPE.0
            | Self::TRANSACTIONS.0
            | Self::RESERVED.0
            | Self::SECURE_CONNECTION.0
            | Self::MULTI_STATEMENTS.0
            | Self::MULTI_RESULTS.0
            | Self::PS_MULTI_RESULTS.0
            | Self::PLUGIN_AUTH.0
            | Self::CONNECT_ATTRS.0
            | Self::PLUGIN_AUTH_LENENC.0
            | Self::CAN_HANDLE_EXPIRED_PASSWORDS.0
            | Self::SESSION_TRACK.0
            | Self::DEPRECATE_EOF.0
            | Self::REMEMBER_OPTIONS.0
            | Self::BULK_OPERATIONS.0
            | Self::EXTENDED_METADATA.0,
    );

    /// Returns whether all bits of `other` are set.
    pub const fn has(self, other: Capabilities) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the bits set in both.
    #[must_use]
    pub const fn both(self, other: Capabilities) -> Capabilities {
        Capabilities(self.0 & other.0)
    }

    /// Returns a copy with some bits set or cleared.
    #[must_use]
    pub const fn set(self, other: Capabilities, on: bool) -> Capabilities {
        Capabilities(if on { self.0 | other.0 } else { self.0 & !other.0 })
    }
}
