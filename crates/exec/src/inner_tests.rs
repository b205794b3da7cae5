//! Statements that run inside another one through [`StatementContext::run_inside`].

use std::sync::Arc;

use cohort_plan::ParamSource;
use cohort_protocol::NullSink;
use cohort_session::{Job, StatementContext};
use cohort_trx::AfterFailure;
use cohort_types::{ErrorCode, SqlResult, Value};

use crate::cached_plan::make_plan;
use crate::dispatch::execute;
use crate::session::Session;

#[path = "../tests/world/mod.rs"]
mod world;

/// Plans and runs a statement within the running one.
fn run(ctx: &mut StatementContext<'_>, sql: &str, params: &[Value]) -> SqlResult<()> {
    let parsed = cohort_sql::parse(sql.as_bytes(), &ctx.session.settings.parse)?;
    let plan =
        make_plan(&ctx.db.catalog(), ctx.session, params, ParamSource::Placeholders, &parsed.statement)?;
    execute(ctx, &Arc::new(plan), &mut NullSink).map(drop)
}

fn outermost<T>(
    session: &mut Session,
    work: impl FnOnce(&mut StatementContext<'_>) -> SqlResult<T>,
) -> SqlResult<T> {
    let source = ParamSource::Placeholders;
    let job = Job { text: b"SELECT f()", param_at: &[], params: &[], source, more: false };
    session.with_context(&job, work)
}

#[test]
fn inner_statements_have_parameters_state_and_warnings_of_their_own() {
    for setting in ["SET autocommit = 1", "SET autocommit = 0"] {
        let mut server = world::Server::open(&world::disk()).expect("an empty disk opens");
        let mut client = server.connect();
        client.run("CREATE TABLE t (id INT PRIMARY KEY, a TINYINT)");
        client.run("SET sql_mode = ''");
        client.run(setting);
        outermost(&mut client.session, |ctx| {
            run(ctx, "INSERT INTO t VALUES (1, 1)", &[])?;
            ctx.session.statement.next_insert_id.set(Some(5));
            let (outcome, warnings) = ctx.run_inside(
                AfterFailure::MayContinue,
                (&[Value::Int(2)], ParamSource::Placeholders),
                |ctx| {
                    assert_eq!(ctx.session.statement.next_insert_id.get(), None);
                    run(ctx, "INSERT INTO t VALUES (?, 1000)", &[Value::Int(2)])
                },
            );
            outcome?;
            assert_eq!(warnings.total(), 1, "1000 is out of range");
            assert_eq!(ctx.session.statement.next_insert_id.get(), Some(5));
            let (outcome, _) =
                ctx.run_inside(AfterFailure::MayContinue, (&[], ParamSource::Placeholders), |ctx| {
                    run(ctx, "INSERT INTO t VALUES (3, 3), (1, 9)", &[])
                });
            assert_eq!(outcome.expect_err("1 is there").code, ErrorCode::DupEntry);
            run(ctx, "INSERT INTO t VALUES (4, 4)", &[])
        })
        .expect("goes on after the failure");
        assert_eq!(client.run("SELECT LAST_INSERT_ID()").lines().nth(1), Some("5"), "{setting}");
        let found = client.run("SELECT GROUP_CONCAT(id, ':', a ORDER BY id) FROM t");
        assert_eq!(found.lines().nth(1), Some("1:1,2:127,4:4"), "{setting}");
        client.run("ROLLBACK");
        let left = client.run("SELECT COUNT(*) FROM t");
        let expected = if setting.ends_with('1') { "3" } else { "0" };
        assert_eq!(left.lines().nth(1), Some(expected), "{setting}");
    }
}

#[test]
fn a_failure_without_a_mark_undoes_the_outermost_statement() {
    let mut server = world::Server::open(&world::disk()).expect("an empty disk opens");
    let mut client = server.connect();
    client.run("CREATE TABLE t (id INT PRIMARY KEY)");
    client.run("BEGIN");
    client.run("INSERT INTO t VALUES (9)");
    let outcome = outermost(&mut client.session, |ctx| {
        run(ctx, "INSERT INTO t VALUES (1)", &[])?;
        let (outcome, _) = ctx.run_inside(AfterFailure::Fail, (&[], ParamSource::Placeholders), |ctx| {
            run(ctx, "INSERT INTO t VALUES (9)", &[])
        });
        assert_eq!(outcome.expect_err("9 is there").code, ErrorCode::DupEntry);
        run(ctx, "INSERT INTO t VALUES (2)", &[])
    });
    assert_eq!(outcome.expect_err("fails").code, ErrorCode::DupEntry);
    client.run("COMMIT");
    assert_eq!(client.run("SELECT GROUP_CONCAT(id) FROM t").lines().nth(1), Some("9"));
}
