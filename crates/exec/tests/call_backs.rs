//! Functions that run statements, called from every clause. The expected results, and the arguments of the
//! calls, are those of stored functions in MariaDB 10.11 that do the same.

mod world;

use std::sync::Arc;

use cohort_catalog::{AccountName, Catalog};
use cohort_dml::InsertPlan;
use cohort_expr::ExprType;
use cohort_plan::{Binder, ParamSource, PlanContext};
use cohort_query::{lock_tables, plan_query_within, rows};
use cohort_session::{
    FoundFunction, Returned, SessionNames, SessionState, StatementContext, StatementFunction,
    StatementFunctions,
};
use cohort_sql::ast::{self, Statement};
use cohort_types::{ErrorCode, SqlError, SqlResult, Value};
use world::{Server, disk};

/// The functions `f` and `g`. `f(x)` inserts its argument into the table `calls` and returns ten times of it;
/// `g(x)` adds the number of rows of `t`.
struct Functions;

impl StatementFunctions for Functions {
    fn find(
        &self,
        _: (&Catalog, &SessionState),
        (schema, name): (&str, &str),
        args: usize,
        _: Option<AccountName>,
    ) -> SqlResult<Option<FoundFunction>> {
        let ty = ExprType::bigint(20);
        match (name, args) {
            ("f" | "g", 1) => {
                let function = Box::new(Function { is_g: name == "g" });
                Ok(Some(FoundFunction {
                    schema: schema.into(),
                    name: name.into(),
                    ty,
                    function,
                    routine: None,
                    parameters: Vec::new(),
                    is_out: Vec::new(),
                }))
            }
            ("f" | "g", _) => Err(SqlError::new(ErrorCode::WrongArguments, "Incorrect arguments")),
            _ => Ok(None),
        }
    }
}

struct Function {
    is_g: bool,
}

impl StatementFunction for Function {
    fn call(&self, args: &[Value], ctx: &mut StatementContext<'_>) -> SqlResult<Returned> {
        let Value::Int(x) = args[0] else { return Ok(Value::Null.into()) };
        if self.is_g {
            return Ok(Value::Int(read(ctx, "SELECT COUNT(*) FROM test.t")? + x).into());
        }
        let n = read(ctx, "SELECT COUNT(*) FROM test.calls")?;
        write(ctx, &format!("INSERT INTO test.calls VALUES ({n}, {x})"))?;
        // It sees what it has written.
        assert_eq!(read(ctx, &format!("SELECT x FROM test.calls WHERE n = {n}"))?, x);
        Ok(Value::Int(x * 10).into())
    }
}

fn parsed(sql: &str) -> Statement {
    cohort_sql::parse(sql.as_bytes(), &Default::default()).expect("the test's statements parse").statement
}

/// Runs a query with one number.
fn read(ctx: &mut StatementContext<'_>, sql: &str) -> SqlResult<i64> {
    let Statement::Query(query) = parsed(sql) else { panic!("{sql}") };
    let catalog = ctx.db.catalog();
    let names = SessionNames::new(&catalog, ctx.session);
    let plan = PlanContext::new(&names, &[], ParamSource::Placeholders);
    let plan = plan_query_within(&plan, ctx.session, None, &query)?;
    lock_tables(&plan, ctx)?;
    match rows(&plan, ctx)?[0][0] {
        Value::Int(number) => Ok(number),
        ref other => panic!("{other:?}"),
    }
}

/// Runs an INSERT.
fn write(ctx: &mut StatementContext<'_>, sql: &str) -> SqlResult<()> {
    let Statement::Insert(insert) = parsed(sql) else { panic!("{sql}") };
    let catalog = ctx.db.catalog();
    let names = SessionNames::new(&catalog, ctx.session);
    let plan = PlanContext::new(&names, &[], ParamSource::Placeholders);
    let session = ctx.session;
    let mut query =
        |query: &ast::Query, row: Option<&Binder<'_>>| plan_query_within(&plan, session, row, query);
    let insert = InsertPlan::plan(&plan, session, &insert, &mut query)?;
    ctx.trx.lock_table(insert.table(), cohort_locks::MetadataMode::SharedWrite)?;
    insert.run(ctx).map(drop)
}

/// A statement, its rows or its error, and the arguments of `f`, sorted and without repetition: how often a
/// function is called depends on the plan. A view that calls one is not merged, so all of its rows are
/// computed; MariaDB computes the row that is wanted.
const SCRIPT: &str = "
SELECT id FROM t WHERE f(v) > 15 -> 2; 3 | 1 2 3
SELECT f(v) FROM t ORDER BY id -> 10; 20; 30 | 1 2 3
SELECT id FROM t ORDER BY f(v) DESC -> 3; 2; 1 | 1 2 3
SELECT COUNT(*) FROM t GROUP BY f(v) -> 1; 1; 1 | 1 2 3
SELECT v FROM t GROUP BY v HAVING f(v) > 15 -> 2; 3 | 1 2 3
SELECT a.id, b.id FROM t a JOIN t b ON f(a.v) = b.v * 10 ORDER BY 1, 2 -> 1 1; 2 2; 3 3 | 1 2 3
SELECT a.id, b.id FROM t a LEFT JOIN t b ON b.id = a.id AND f(b.v) > 15 ORDER BY 1 -> 1 NULL; 2 2; 3 3 | 1 2 3
SELECT SUM(f(v)) FROM t -> 60 | 1 2 3
SELECT SUM(f(v)) OVER (ORDER BY id) FROM t -> 10; 30; 60 | 1 2 3
SELECT DISTINCT f(v) > 15 FROM t ORDER BY 1 -> 0; 1 | 1 2 3
SELECT f(v) AS w FROM t WHERE id = 2 UNION ALL SELECT f(7) -> 20; 70 | 2 7
SELECT id FROM t WHERE id IN (SELECT f(u.id) / 10 FROM t u WHERE u.id > 1) -> 2; 3 | 2 3
SELECT (SELECT f(t.v) FROM t u WHERE u.id = t.id) FROM t ORDER BY id -> 10; 20; 30 | 1 2 3
SELECT id FROM t WHERE id = 2 AND f(1) = 10 -> 2 | 1
SELECT id FROM t WHERE id = f(1) / 5 -> 2 | 1
SELECT id, CASE WHEN f(v) > 15 THEN f(v) END FROM t ORDER BY id -> 1 NULL; 2 20; 3 30 | 1 2 3
SELECT id FROM t WHERE v IN (1, f(3) / 10, 5) ORDER BY id -> 1; 3 | 3
SELECT x.w FROM (SELECT f(v) AS w FROM t) x WHERE x.w > 15 ORDER BY 1 -> 20; 30 | 1 2 3
SELECT w FROM vf WHERE id = 3 -> 30 | 1 2 3
WITH RECURSIVE n AS (SELECT 1 AS a UNION ALL SELECT f(a) DIV 10 + 1 FROM n WHERE a < 3) SELECT COUNT(*) FROM n -> 3 | 1 2
SELECT f(f(2)) -> 200 | 2 20
SELECT g(1) -> 4 |
SELECT id, g(v) FROM t ORDER BY id -> 1 4; 2 5; 3 6 |
SELECT 1 FROM t WHERE f(v) = 10 FOR UPDATE -> 1 | 1 2 3
PREPARE s FROM 'SELECT f(?) FROM t WHERE id = f(?) / 10' -> |
EXECUTE s USING 5, 1 -> 50 | 1 5
EXPLAIN SELECT f(v) FROM t -> 1 SIMPLE t ALL NULL NULL NULL NULL 3 |
EXECUTE s USING f(5), 1 -> ERROR 1970 |
HANDLER t OPEN -> |
HANDLER t READ FIRST WHERE f(v) = 10 -> ERROR 1235 |
HANDLER t CLOSE -> |
INSERT INTO t VALUES (4, f(4)), (5, f(5)) -> | 4 5
INSERT INTO t SELECT id + 10, f(v) FROM t WHERE id = 3 -> | 3
INSERT INTO t VALUES (1, 2) ON DUPLICATE KEY UPDATE v = f(VALUES(v)) + f(v) -> | 1 2
REPLACE INTO t VALUES (5, f(6)) -> | 6
UPDATE t SET v = f(1) WHERE id = 2 -> | 1
UPDATE t SET v = v + 1 WHERE f(id) = 30 -> | 1 2 3 4 5 13
UPDATE t SET v = f(id) ORDER BY f(id) DESC LIMIT 1 -> | 1 2 3 4 5 13
UPDATE t a JOIN t b ON a.id = b.id AND f(b.id) < 20 SET a.v = f(b.id) + 1 -> | 1 2 3 4 5 13
DELETE FROM t WHERE f(id) = 40 -> | 1 2 3 5 4 13
DELETE a FROM t a JOIN t b ON a.id = b.id WHERE f(a.id) = 50 -> | 1 2 3 5 13
INSERT INTO t VALUES (20, 2) RETURNING f(v) -> 20 | 2
DELETE FROM t WHERE id = 20 RETURNING f(v), id -> 20 20 | 2
DO f(8) -> | 8
SET @a = f(9) -> | 9
SELECT @a -> 90 |
SELECT id, v FROM t ORDER BY id -> 1 11; 2 10; 3 4; 13 130 |
SELECT unknown_function(1) -> ERROR 1305 |
SELECT f(1, 2) -> ERROR 1210 |
CREATE TABLE x (a INT, b INT AS (f(a))) -> ERROR 1901 |
CREATE TABLE x (a INT, b INT AS (f(a)) STORED) -> ERROR 1901 |
CREATE TABLE x (a INT DEFAULT (f(1))) -> ERROR 1901 |
CREATE TABLE x (a INT, CHECK (f(a) > 1)) -> ERROR 1901 |
";

#[test]
fn functions_run_statements_in_every_clause() {
    let mut server = Server::open(&disk()).expect("an empty disk opens");
    assert!(server.db.functions.set(Arc::new(Functions)).is_ok());
    let mut client = server.connect();
    for sql in [
        "CREATE TABLE calls (n INT PRIMARY KEY, x INT)",
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
        "CREATE VIEW vf AS SELECT id, f(v) AS w FROM t",
    ] {
        client.ok(sql);
    }
    let rows = |answer: &str| {
        let lines = answer.lines().skip(1).map(|line| line.replace(" | ", " "));
        lines.collect::<Vec<_>>().join("; ")
    };
    for line in SCRIPT.lines().filter(|line| !line.is_empty()) {
        let (sql, expected) = line.split_once(" ->").expect("an arrow");
        let answer = client.run(sql);
        let found = match answer.split_once(' ') {
            Some(("ERROR", text)) => format!("ERROR {}", text.split(' ').next().unwrap_or_default()),
            _ if answer.starts_with("OK") => String::new(),
            _ => rows(&answer),
        };
        let calls = rows(&client.run("SELECT DISTINCT x FROM calls ORDER BY x"));
        let calls = format!("{} | {}", found.trim(), calls.replace("; ", " "));
        let (result, args) = expected.split_once('|').expect("a bar");
        let mut args: Vec<i64> = args.split_whitespace().map(|arg| arg.parse().expect("a number")).collect();
        args.sort_unstable();
        let args: Vec<String> = args.iter().map(i64::to_string).collect();
        assert_eq!(calls, format!("{} | {}", result.trim(), args.join(" ")), "{sql}: {answer}");
        client.ok("DELETE FROM calls");
    }
}

#[test]
fn writes_of_a_function_are_undone_with_the_statement() {
    let mut server = Server::open(&disk()).expect("an empty disk opens");
    assert!(server.db.functions.set(Arc::new(Functions)).is_ok());
    let mut client = server.connect();
    client.ok("CREATE TABLE calls (n INT PRIMARY KEY, x INT)");
    client.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)");
    client.ok("INSERT INTO t VALUES (1, 1), (2, 2)");
    for failing in [
        "INSERT INTO t SELECT 3, f(v) FROM t",
        "UPDATE t SET id = f(v) - f(v) + 5",
        "SELECT f(v) FROM t WHERE (SELECT u.id FROM t u WHERE u.id >= t.id) > 0",
    ] {
        assert!(client.run(failing).starts_with("ERROR"), "{failing}");
        assert_eq!(client.run("SELECT COUNT(*) FROM calls"), "COUNT(*)\n0\n", "{failing}");
    }
    client.ok("BEGIN");
    client.ok("SELECT f(v) FROM t");
    client.ok("ROLLBACK");
    assert_eq!(client.run("SELECT COUNT(*) FROM calls"), "COUNT(*)\n0\n");
    client.ok("SELECT f(v) FROM t");
    assert_eq!(client.run("SELECT COUNT(*) FROM calls"), "COUNT(*)\n2\n");
}
