//! A value as number, text or date, with MariaDB's warnings for what is lost.
