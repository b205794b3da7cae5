//! Workloads: the transactions of a client, as data.
//!
//! A workload is a list of steps, each a round trip, which run one after the other, repeatedly. In SQL, `{t}`
//! stands for the number of a table, `{auto}` for a number that the server chooses, `?` for a parameter. The
//! statements are those of sysbench, mysqlslap and the original discussions of group commit, so that figures
//! can be compared. Keys are distributed evenly over all rows, or skewed as in sysbench's default.

use crate::dialect::Dialect;
use crate::random::Random;
use crate::wire::{Types, Value};

/// Size of the data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    pub tables: u32,
    pub rows: u32,
    pub keys: Keys,
}

/// Distribution of the rows that are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// All rows with the same probability.
    Even,
    /// A few rows most of the time.
    Skewed,
}

/// Value for a `?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A random row.
    Id,
    /// The row of the last `Id`.
    SameId,
    /// The row this many rows after the last `Id`.
    After(i32),
    /// One of this many hot rows.
    HotId(u32),
    /// A random value of column `k`.
    K,
    /// Filler of column `c`: 119 characters.
    C,
    /// Filler of column `pad`: 59 characters.
    Pad,
    /// A name that is unique to the client.
    Name,
}

/// Table that `{t}` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    Random,
    /// The table of the previous step.
    Same,
    First,
}

/// One statement of a transaction.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    pub sql: &'static str,
    pub parameters: &'static [Parameter],
    pub table: Table,
}

/// The tables that a workload needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    Sbtest,
    Slap,
    Demo,
}

/// Protocol for sending statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Prepared,
    Text,
}

impl Protocol {
    pub fn name(self) -> &'static str {
        if self == Protocol::Prepared { "prepared" } else { "text" }
    }
}

/// A workload that each client repeats.
#[derive(Debug, PartialEq, Eq)]
pub struct Workload {
    pub name: &'static str,
    pub about: &'static str,
    pub schema: Schema,
    /// The original of this workload never uses prepared statements.
    pub text_only: bool,
    pub steps: &'static [Step],
}

const fn step(sql: &'static str, parameters: &'static [Parameter]) -> Step {
    Step { sql, parameters, table: Table::Random }
}

const fn control(sql: &'static str) -> Step {
    Step { sql, parameters: &[], table: Table::First }
}

const fn named(sql: &'static str) -> Step {
    Step { sql, parameters: &[Parameter::Name], table: Table::Same }
}

const BEGIN: Step = control("BEGIN");
const COMMIT: Step = control("COMMIT");
const POINT_SELECT: Step = step("SELECT c FROM sbtest{t} WHERE id=?", &[Parameter::Id]);
const UPDATE_INDEX: Step = step("UPDATE sbtest{t} SET k=k+1 WHERE id=?", &[Parameter::Id]);
const UPDATE_NON_INDEX: Step = step("UPDATE sbtest{t} SET c=? WHERE id=?", &[Parameter::C, Parameter::Id]);
const DELETE: Step = step("DELETE FROM sbtest{t} WHERE id=?", &[Parameter::Id]);
const INSERT_SAME: Step = Step {
    sql: "INSERT INTO sbtest{t} (id, k, c, pad) VALUES (?, ?, ?, ?)",
    parameters: &[Parameter::SameId, Parameter::K, Parameter::C, Parameter::Pad],
    table: Table::Same,
};
const RANGE: &[Parameter] = &[Parameter::Id, Parameter::After(99)];
const SIMPLE_RANGE: Step = step("SELECT c FROM sbtest{t} WHERE id BETWEEN ? AND ?", RANGE);
const SUM_RANGE: Step = step("SELECT SUM(k) FROM sbtest{t} WHERE id BETWEEN ? AND ?", RANGE);
const ORDER_RANGE: Step = step("SELECT c FROM sbtest{t} WHERE id BETWEEN ? AND ? ORDER BY c", RANGE);
const DISTINCT_RANGE: Step =
    step("SELECT DISTINCT c FROM sbtest{t} WHERE id BETWEEN ? AND ? ORDER BY c", RANGE);

/// All workloads.
pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "point_select",
        about: "one row by primary key (sysbench oltp_point_select)",
        schema: Schema::Sbtest,
        text_only: false,
        steps: &[POINT_SELECT],
    },
    Workload {
        name: "read_only",
        about: "ten point and four range selects in a transaction (sysbench oltp_read_only)",
        schema: Schema::Sbtest,
        text_only: false,
        steps: &[
            BEGIN,
            POINT_SELECT,
            POINT_SELECT,
            POINT_SELECT,
            POINT_SELECT,
            POINT_SELECT,
            POINT_SELECT,
            POINT_SELECT,
            POINT_SELECT,
            POINT_SELECT,
            POINT_SELECT,
            SIMPLE_RANGE,
            SUM_RANGE,
            ORDER_RANGE,
            DISTINCT_RANGE,
            COMMIT,
        ],
    },
    Workload {
        name: "range",
        about: "a hundred rows by primary key",
        schema: Schema::Sbtest,
        text_only: false,
        steps: &[SIMPLE_RANGE],
    },
    Workload {
        name: "range_sum",
        about: "the sum over a hundred rows by primary key",
        schema: Schema::Sbtest,
        text_only: false,
        steps: &[SUM_RANGE],
    },
    Workload {
        name: "range_order",
        about: "a hundred rows by primary key, sorted by a text",
        schema: Schema::Sbtest,
        text_only: false,
        steps: &[ORDER_RANGE],
    },
    Workload {
        name: "range_distinct",
        about: "the different texts of a hundred rows by primary key, sorted",
        schema: Schema::Sbtest,
        text_only: false,
        steps: &[DISTINCT_RANGE],
    },
    Workload {
        name: "delete",
        about: "one row by primary key, which may be gone (sysbench oltp_delete)",
        schema: Schema::Sbtest,
        text_only: false,
        steps: &[DELETE],
    },
    Workload {
        name: "update_index",
        about: "one row, an indexed column (sysbench oltp_update_index)",
        schema: Schema::Sbtest,
        text_only: false,
        steps: &[UPDATE_INDEX],
    },
    Workload {
        name: "update_non_index",
        about: "one row, a column without index (sysbench oltp_update_non_index)",
        schema: Schema::Sbtest,
        text_only: false,
        steps: &[UPDATE_NON_INDEX],
    },
    Workload {
        name: "insert",
        about: "one row of 190 bytes (sysbench oltp_insert)",
        schema: Schema::Sbtest,
        text_only: true,
        steps: &[step(
            "INSERT INTO sbtest{t} (id, k, c, pad) VALUES ({auto}, ?, ?, ?)",
            &[Parameter::K, Parameter::C, Parameter::Pad],
        )],
    },
    Workload {
        name: "write_only",
        about: "transaction of two updates, a delete and an insert (sysbench oltp_write_only)",
        schema: Schema::Sbtest,
        text_only: false,
        steps: &[BEGIN, UPDATE_INDEX, UPDATE_NON_INDEX, DELETE, INSERT_SAME, COMMIT],
    },
    Workload {
        name: "read_write",
        about: "what write_only does after ten point and four range selects (sysbench oltp_read_write)",
        schema: Schema::Sbtest,
        text_only: false,
        steps: &[
            BEGIN,
            POINT_SELECT,
            POINT_SELECT,
            POINT_SELECT,
            POINT_SELECT,
            POINT_SELECT,
            POINT_SELECT,
            POINT_SELECT,
            POINT_SELECT,
            POINT_SELECT,
            POINT_SELECT,
            SIMPLE_RANGE,
            SUM_RANGE,
            ORDER_RANGE,
            DISTINCT_RANGE,
            UPDATE_INDEX,
            UPDATE_NON_INDEX,
            DELETE,
            INSERT_SAME,
            COMMIT,
        ],
    },
    Workload {
        name: "hot_row",
        about: "every client updates the same row",
        schema: Schema::Sbtest,
        text_only: false,
        steps: &[Step {
            sql: "UPDATE sbtest{t} SET k=k+1 WHERE id=?",
            parameters: &[Parameter::HotId(1)],
            table: Table::First,
        }],
    },
    Workload {
        name: "contended",
        about: "transaction of a select, an update of one of ten hot rows and an insert",
        schema: Schema::Sbtest,
        text_only: false,
        steps: &[
            BEGIN,
            POINT_SELECT,
            Step {
                sql: "UPDATE sbtest{t} SET k=k+1 WHERE id=?",
                parameters: &[Parameter::HotId(10)],
                table: Table::First,
            },
            Step {
                sql: "INSERT INTO slap (value) VALUES (?)",
                parameters: &[Parameter::K],
                table: Table::First,
            },
            COMMIT,
        ],
    },
    Workload {
        name: "xa_branch",
        about: "one row, an indexed column, in a branch of an XA transaction that is prepared and committed",
        schema: Schema::Sbtest,
        text_only: true,
        steps: &[
            named("XA START ?"),
            UPDATE_INDEX,
            named("XA END ?"),
            named("XA PREPARE ?"),
            named("XA COMMIT ?"),
        ],
    },
    Workload {
        name: "slap",
        about: "one row of two integers (mariadb-slap)",
        schema: Schema::Slap,
        text_only: true,
        steps: &[control("INSERT INTO slap (id, value) VALUES (NULL, 1)")],
    },
];

/// The load of `cohort-bench demo`.
pub const DEMO: Workload = Workload {
    name: "demo",
    about: "single-row inserts and updates",
    schema: Schema::Demo,
    text_only: false,
    steps: &[
        step("INSERT INTO cohort_demo (n, note) VALUES (?, ?)", &[Parameter::K, Parameter::Pad]),
        step("UPDATE cohort_demo SET n=n+1 WHERE id=?", &[Parameter::Id]),
    ],
};

pub fn find(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().find(|workload| workload.name == name)
}

impl Workload {
    /// Returns the protocol for a run that asks for `asked`.
    pub fn protocol(&self, asked: Protocol) -> Protocol {
        if self.text_only { Protocol::Text } else { asked }
    }

    /// Returns whether the steps form one transaction, which an error leaves incomplete.
    pub fn is_transaction(&self) -> bool {
        self.steps[0] == BEGIN
    }

    /// Returns whether a server of this dialect can run it.
    pub fn is_spoken_by(&self, dialect: Dialect) -> bool {
        dialect == Dialect::MySql || !["xa_branch", "slap"].contains(&self.name)
    }

    /// Returns the distinct statements of a connection. Several steps may share one.
    pub fn statements(&self, scale: Scale, dialect: Dialect) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for step in self.steps {
            for table in 1..=scale.tables {
                let sql = dialect.statement(step.sql, table);
                if !all.contains(&sql) {
                    all.push(sql);
                }
            }
        }
        all
    }
}

/// A workload prepared for sending. All connections share it.
pub struct Plan {
    pub protocol: Protocol,
    pub dialect: Dialect,
    scale: Scale,
    /// By step, then by table.
    steps: Vec<(&'static Step, Vec<Prepared>)>,
}

struct Prepared {
    /// Index into [`Workload::statements`].
    statement: usize,
    /// The text between the parameters.
    pieces: Vec<String>,
}

impl Plan {
    /// Creates a plan with the protocol of the workload's original.
    pub fn new(workload: &'static Workload, scale: Scale, asked: Protocol, dialect: Dialect) -> Plan {
        Plan::new_as(workload, scale, workload.protocol(asked), dialect)
    }

    /// Creates a plan with the given protocol.
    pub fn new_as(workload: &'static Workload, scale: Scale, protocol: Protocol, dialect: Dialect) -> Plan {
        let statements = workload.statements(scale, dialect);
        let of_table = |step: &'static Step, table: u32| {
            let sql = dialect.statement(step.sql, table);
            Prepared {
                statement: statements.iter().position(|s| *s == sql).expect("listed above"),
                pieces: sql.split('?').map(str::to_owned).collect(),
            }
        };
        let all_tables =
            |step: &'static Step| (1..=scale.tables).map(|table| of_table(step, table)).collect();
        let steps = workload.steps.iter().map(|step| (step, all_tables(step))).collect();
        Plan { protocol, dialect, scale, steps }
    }

    pub fn steps(&self) -> usize {
        self.steps.len()
    }
}

/// State of one client from step to step.
pub struct Client {
    random: Random,
    name: Vec<u8>,
    table: u32,
    id: i32,
    /// Statement ids from the server, by index of [`Workload::statements`]. Empty with the text protocol.
    statements: Vec<(u32, Types)>,
    values: Vec<Value>,
}

impl Client {
    pub fn new(seed: u64, statements: Vec<u32>) -> Client {
        let statements = statements.into_iter().map(|number| (number, Types::Send)).collect();
        let name = format!("client {seed}").into_bytes();
        Client { random: Random::new(seed), name, table: 1, id: 1, statements, values: Vec::new() }
    }

    /// Appends the request of a step.
    pub fn request(&mut self, plan: &Plan, step: usize, out: &mut Vec<u8>) {
        let (step, by_table) = &plan.steps[step];
        match step.table {
            Table::Random => self.table = self.random.one_to(plan.scale.tables),
            Table::Same => {}
            Table::First => self.table = 1,
        }
        self.values.clear();
        for parameter in step.parameters {
            let value = self.value(*parameter, plan.scale);
            self.values.push(value);
        }
        let prepared = &by_table[self.table as usize - 1];
        match plan.protocol {
            Protocol::Prepared => {
                let (number, types) = &mut self.statements[prepared.statement];
                plan.dialect.execute(*number, &self.values, *types, out);
                *types = Types::Known;
            }
            Protocol::Text => plan.dialect.query(out, |out| {
                for (index, piece) in prepared.pieces.iter().enumerate() {
                    out.extend_from_slice(piece.as_bytes());
                    if let Some(value) = self.values.get(index) {
                        put_literal(value, out);
                    }
                }
            }),
        }
    }

    fn value(&mut self, parameter: Parameter, scale: Scale) -> Value {
        let mut filler = |groups| {
            let mut text = Vec::with_capacity(12 * groups);
            self.random.digits(groups, &mut text);
            Value::Text(text)
        };
        match parameter {
            Parameter::C => filler(10),
            Parameter::Pad => filler(5),
            Parameter::Name => Value::Text(self.name.clone()),
            Parameter::K => Value::Int(self.random.one_to(scale.rows) as i32),
            Parameter::HotId(rows) => Value::Int(self.random.one_to(rows) as i32),
            Parameter::SameId => Value::Int(self.id),
            Parameter::After(rows) => Value::Int(self.id + rows),
            Parameter::Id => {
                let id = match scale.keys {
                    Keys::Even => self.random.one_to(scale.rows),
                    Keys::Skewed => self.random.one_to_skewed(scale.rows),
                };
                self.id = id as i32;
                Value::Int(self.id)
            }
        }
    }
}

fn put_literal(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Int(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Value::Text(text) => {
            out.push(b'\'');
            out.extend_from_slice(text);
            out.push(b'\'');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Scale = Scale { tables: 3, rows: 100, keys: Keys::Even };

    #[test]
    fn every_question_mark_has_a_parameter() {
        for workload in WORKLOADS.iter().chain([&DEMO]) {
            for step in workload.steps {
                assert_eq!(step.sql.matches('?').count(), step.parameters.len(), "{}", step.sql);
            }
        }
    }

    #[test]
    fn statements_are_shared_by_equal_steps() {
        let read_write = find("read_write").expect("listed");
        // BEGIN, COMMIT, and nine statements on each table.
        assert_eq!(read_write.statements(SCALE, Dialect::MySql).len(), 2 + 9 * 3);
    }

    #[test]
    fn the_insert_goes_to_the_row_that_was_deleted() {
        let plan = Plan::new(find("write_only").expect("listed"), SCALE, Protocol::Text, Dialect::MySql);
        let mut client = Client::new(1, Vec::new());
        for _ in 0..20 {
            let mut texts = Vec::new();
            for step in 0..plan.steps() {
                let mut out = Vec::new();
                client.request(&plan, step, &mut out);
                texts.push(String::from_utf8(out[5..].to_vec()).expect("text"));
            }
            let (table, id) = texts[3]
                .strip_prefix("DELETE FROM sbtest")
                .and_then(|rest| rest.split_once(" WHERE id="))
                .expect("a delete");
            let insert = format!("INSERT INTO sbtest{table} (id, k, c, pad) VALUES ({id}, ");
            assert!(texts[4].starts_with(&insert), "{texts:?}");
            assert_eq!((texts[0].as_str(), texts[5].as_str()), ("BEGIN", "COMMIT"));
        }
    }

    #[test]
    fn a_branch_has_its_clients_name_from_start_to_commit() {
        let plan = Plan::new(find("xa_branch").expect("listed"), SCALE, Protocol::Text, Dialect::MySql);
        let mut client = Client::new(7, Vec::new());
        let texts: Vec<String> = (0..plan.steps())
            .map(|step| {
                let mut out = Vec::new();
                client.request(&plan, step, &mut out);
                String::from_utf8(out[5..].to_vec()).expect("text")
            })
            .collect();
        assert!(texts[1].starts_with("UPDATE sbtest"), "{texts:?}");
        for (at, verb) in [(0, "START"), (2, "END"), (3, "PREPARE"), (4, "COMMIT")] {
            assert_eq!(texts[at], format!("XA {verb} 'client 7'"));
        }
    }

    #[test]
    fn types_are_sent_with_the_first_execution_only() {
        let plan = Plan::new(find("hot_row").expect("listed"), SCALE, Protocol::Prepared, Dialect::MySql);
        let mut client = Client::new(1, vec![9, 10, 11]);
        let sizes = [(); 2].map(|()| {
            let mut out = Vec::new();
            client.request(&plan, 0, &mut out);
            out.len()
        });
        assert_eq!(sizes[0], sizes[1] + 2);
    }
}
