//! TPC-H and the Star Schema Benchmark at a small scale, the latter with and without indexes: the results
//! must equal MariaDB's, row by row. Rows and queries are those of `cohort-bench sql`.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::support::{Cohort, Maria, rows};
use crate::tpch::{Row, TableDefinition};
use crate::{ssb, tpch};

/// Scale factors; 1 means six million rows in the largest table.
///
/// At smaller factors, TPC-H assigns some suppliers to a part twice.
const TPCH_SCALE: f64 = 0.01;
const STAR_SCALE: f64 = 0.003;
const INSERT_BYTES: usize = 128 << 10;

/// Inserts rows, many per statement.
struct Filler<'a> {
    clients: &'a mut [Conn; 2],
    /// The unfinished statement of each table.
    open: Vec<(&'static str, String)>,
}

impl Filler<'_> {
    fn take(&mut self, row: Row) -> Result<(), String> {
        if !self.open.iter().any(|(table, _)| *table == row.table) {
            self.open.push((row.table, String::new()));
        }
        let (table, sql) =
            self.open.iter_mut().find(|(table, _)| *table == row.table).expect("it was put there");
        match sql.is_empty() {
            true => *sql = format!("INSERT INTO {table} VALUES ({})", row.values),
            false => *sql += &format!(",({})", row.values),
        }
        if sql.len() > INSERT_BYTES {
            let sql = std::mem::take(sql);
            self.run_on_all(&sql)?;
        }
        Ok(())
    }

    fn run_on_all(&mut self, sql: &str) -> Result<(), String> {
        self.clients
            .iter_mut()
            .try_for_each(|client| client.query_drop(sql))
            .map_err(|error| error.to_string())
    }

    fn finish(mut self) -> Result<(), String> {
        for (_, sql) in std::mem::take(&mut self.open).iter().filter(|(_, sql)| !sql.is_empty()) {
            self.run_on_all(sql)?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Indexes {
    None,
    All,
}

/// Fills both servers and runs all queries, with each choice of indexes.
fn compare(
    tables: &[TableDefinition],
    queries: &[(String, &str)],
    asks: &[Indexes],
    fill: impl FnOnce(&mut Filler<'_>) -> Result<(), String>,
) {
    let (server, mariadb) = (Cohort::new(&[]), Maria::new(&[]));
    let mut clients = [server.client(), mariadb.client()];
    let run_on_all = |clients: &mut [Conn; 2], sql: &str| {
        for client in clients {
            client.query_drop(sql).unwrap_or_else(|error| panic!("{sql:.200}: {error}"));
        }
    };
    run_on_all(&mut clients, "CREATE DATABASE benchmark CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci");
    run_on_all(&mut clients, "USE benchmark");
    for table in tables {
        run_on_all(&mut clients, &format!("CREATE TABLE {} ({})", table.name, table.columns));
    }
    let mut filler = Filler { clients: &mut clients, open: Vec::new() };
    fill(&mut filler).and_then(|()| filler.finish()).expect("the rows are taken");
    for asked in asks {
        if *asked == Indexes::All {
            for table in tables {
                for index in table.indexes {
                    let (name, columns) = index.split_once('(').expect("a name and its columns");
                    run_on_all(&mut clients, &format!("CREATE INDEX {name} ON {} ({columns}", table.name));
                }
                run_on_all(&mut clients, &format!("ANALYZE TABLE {}", table.name));
            }
        }
        let mut found = 0;
        for (name, sql) in queries {
            let [ours, theirs] = clients.each_mut().map(|client| rows(client, sql));
            assert_eq!(ours, theirs, "{name}, indexes: {asked:?}: Cohort's rows, then MariaDB's");
            found += usize::from(!ours.is_empty());
        }
        // Empty results would be equal too easily.
        assert!(found * 4 > queries.len() * 3, "{found} of {} queries find rows", queries.len());
    }
}

#[test]
fn tpch_is_answered_as_by_mariadb() {
    let queries: Vec<(String, &str)> =
        tpch::QUERIES.iter().enumerate().map(|(n, sql)| (format!("Q{}", n + 1), *sql)).collect();
    // Without indexes MariaDB takes minutes.
    compare(&tpch::TABLES, &queries, &[Indexes::All], |filler| {
        tpch::rows_of(TPCH_SCALE, |row| filler.take(row))
    });
}

#[test]
fn the_star_schema_benchmark_is_answered_as_by_mariadb() {
    let queries: Vec<(String, &str)> =
        ssb::QUERIES.iter().map(|(name, sql)| ((*name).to_owned(), *sql)).collect();
    compare(&ssb::TABLES, &queries, &[Indexes::None, Indexes::All], |filler| {
        ssb::rows_of(STAR_SCALE, |row| filler.take(row))
    });
}
