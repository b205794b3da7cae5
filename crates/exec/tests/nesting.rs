//! Deeply nested and very long statements: they must succeed or fail with MariaDB's errors, without a stack
//! overflow with the minimum or the default stack.

mod support;

use cohort_base::STACK_RESERVE;
use cohort_exec::Session;
use support::run;

/// Minimum and default of `thread_stack`.
const STACKS: [usize; 2] = [128 << 10, 2 << 20];

/// Errors for statements that are too deep: of the stack, of nested SELECTs, of joins.
const REFUSALS: [&str; 3] = ["ERROR 1436 ", "ERROR 1473 ", "ERROR 1116 "];

/// Runs `work` with a session on a thread with this stack size.
fn with_stack(thread_stack: usize, work: impl FnOnce(&mut Session) + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(thread_stack + STACK_RESERVE).spawn(move || {
        let db = support::database_in_real_time();
        let mut session = support::session(&db, 1);
        run(&mut session, "create table t (id int not null primary key, k int)");
        run(&mut session, "insert into t values (1, 1), (2, 2)");
        work(&mut session);
    });
    thread.expect("a thread").join().expect("no panic");
}

fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

/// Constructs that nest, by depth.
const NESTED: &[(&str, fn(usize) -> String)] = &[
    ("unary minus", |n| format!("select {} k from t", nested("- ", "", "", n))),
    ("not between operators", |n| format!("select {} from t", nested("not (k = ", "k", ")", n))),
    ("bit not", |n| format!("select {} k from t", nested("~ ", "", "", n))),
    ("sum", |n| format!("select k{} from t", " + k".repeat(n))),
    ("constant sum", |n| format!("select 1{}", " + 1".repeat(n))),
    ("sum to the right", |n| format!("select {} from t", nested("k + (", "k", ")", n))),
    ("exclusive or", |n| format!("select k{} from t", " xor k".repeat(n))),
    ("comparisons", |n| format!("select k{} from t", " = k".repeat(n))),
    ("functions", |n| format!("select {} from t", nested("abs(", "k", ")", n))),
    ("constant functions", |n| format!("select {}", nested("abs(", "1", ")", n))),
    ("coalesce", |n| format!("select {} from t", nested("coalesce(null, ", "k", ")", n))),
    ("case", |n| format!("select {} from t", nested("case when k then ", "k", " end", n))),
    ("case in when", |n| format!("select {} from t", nested("case when ", "k", " then 1 end", n))),
    ("cast", |n| format!("select {} from t", nested("cast(", "k", " as char)", n))),
    ("in list", |n| format!("select {} from t", nested("k in (1, ", "k", ")", n))),
    ("between", |n| format!("select {} from t", nested("k between 0 and (", "k", ")", n))),
    ("like", |n| format!("select k{} from t", " not like 1".repeat(n))),
    ("collate", |n| format!("select 'a'{}", " collate utf8mb4_bin".repeat(n))),
    ("assignment", |n| format!("select {}", nested("@a := ", "1", "", n))),
    ("json", |n| format!("select {}", nested("json_array(", "1", ")", n))),
    ("json text", |n| {
        format!("select json_valid('{}'), json_extract('{0}', '$[0]')", nested("[", "1", "]", n))
    }),
    ("xml", |n| format!("select extractvalue('{}', '//a')", nested("<a>", "1", "</a>", n))),
    ("xpath", |n| format!("select extractvalue('<a>1</a>', '{}')", nested("(", "1", ")", n))),
    ("steps of an xpath", |n| format!("select extractvalue('<a>1</a>', '{}')", "/a".repeat(n))),
    ("predicates", |n| format!("select extractvalue('<a>1</a>', '{}')", nested("/a[", "1", "]", n))),
    ("dynamic columns", |n| format!("select column_json({})", nested("column_create('a', ", "1", ")", n))),
    ("interval", |n| format!("select '2020-01-01'{}", " + interval 1 day".repeat(n))),
    ("row", |n| format!("select {} from t", nested("(k, ", "1", ") = (k, 1)", n))),
    ("if in where", |n| format!("select 1 from t where {}", nested("if(k, ", "k", ", 0)", n))),
    ("group by", |n| format!("select {} x from t group by x having x", nested("abs(", "k", ")", n))),
    ("order by", |n| format!("select 1 from t order by {}", nested("abs(", "k", ")", n))),
    ("aggregate", |n| format!("select sum({}) from t", nested("abs(", "k", ")", n))),
    ("update", |n| format!("update t set k = {}", nested("abs(", "k", ")", n))),
    ("insert", |n| format!("insert into t values ({} + 100, 1)", nested("abs(", "1", ")", n))),
    ("subqueries", |n| format!("select {}", nested("(select ", "1", ")", n))),
    ("in subqueries", |n| {
        format!("select 1 from t where {}", nested("k in (select k from t where ", "1", ")", n))
    }),
    ("exists", |n| format!("select {}", nested("exists (select ", "1", ")", n))),
    ("derived", |n| format!("select * from {}", nested("(select * from ", "t", ") x", n))),
    ("parenthesised queries", |n| nested("(", "select 1", " limit 1)", n)),
    ("with", |n| format!("{} select 1", nested("with x as (", "select 1", " limit 1)", n))),
    ("joins", |n| {
        format!("select 1 from t a0{} limit 1", (1..=n).map(|i| format!(" join t a{i}")).collect::<String>())
    }),
    ("tables", |n| {
        format!("select 1 from t a0{} limit 1", (1..=n).map(|i| format!(", t a{i}")).collect::<String>())
    }),
    ("nested joins", |n| format!("select 1 from {} limit 1", nested("(t join ", "t", ")", n))),
    ("explain", |n| format!("{}select 1", "explain ".repeat(n))),
    ("set statement", |n| format!("{}select 1", "set statement max_statement_time=100 for ".repeat(n))),
    ("prepare", |n| format!("prepare p from 'select {}'", nested("abs(", "?", ")", n))),
];

#[test]
fn nesting_of_any_depth_is_answered_or_refused() {
    for thread_stack in STACKS {
        with_stack(thread_stack, |session| {
            for (name, statement) in NESTED {
                // Depths around the limit, wherever it is, and far beyond it.
                let mut refused = false;
                for depth in [1, 8, 20, 40, 62, 63, 64, 100, 150, 220, 330, 500, 700, 990, 1010, 5000, 50_000]
                {
                    let answer = run(session, &statement(depth));
                    refused |= REFUSALS.iter().any(|refusal| answer.contains(refusal));
                    assert!(depth > 1 || !refused, "{name}: {answer}");
                    assert_eq!(run(session, "select 'alive'"), "alive\nalive\n", "{name} {depth}");
                }
            }
        });
    }
}

/// Long chains that need no stack.
const LONG: &[(&str, fn(usize) -> String)] = &[
    ("union all", |n| format!("select 1{} limit 1", " union all select 1".repeat(n))),
    ("union", |n| format!("select 1{}", " union select 1".repeat(n))),
    ("except", |n| format!("select 1{}", " except select 2".repeat(n))),
    ("intersect", |n| format!("select 1{}", " intersect select 1".repeat(n))),
    ("mixed set operations", |n| {
        format!("select 1{}", " union select 2 except select 2 union all select 1".repeat(n))
    }),
    ("all set operators", |n| {
        format!(
            "select 1{}",
            " union select 2 intersect select 2 except all select 2 except select 3".repeat(n)
        )
    }),
    ("and", |n| format!("select 1 from t where k = 1{}", " and k < 7".repeat(n))),
    ("or", |n| format!("select 1 from t where k = 1{}", " or k = 7".repeat(n))),
    ("in", |n| format!("select 1 from t where k in (1{})", ", 7".repeat(n))),
    ("not", |n| format!("select {} 1", "not ".repeat(2 * n))),
    ("parentheses", |n| format!("select {}", nested("(", "1", ")", n))),
    ("case arms", |n| format!("select case 1{} else 1 end", " when 0 then 7".repeat(n))),
    ("arguments", |n| format!("select coalesce(null{}, 1)", ", null".repeat(n))),
    ("values", |n| format!("select count(*) > 1 from (values (1){}) x", ", (2)".repeat(n))),
];

#[test]
fn chains_are_as_long_as_a_client_likes() {
    for thread_stack in STACKS {
        with_stack(thread_stack, |session| {
            for (name, statement) in LONG {
                let answer = run(session, &statement(3000));
                let value = answer.lines().nth(1);
                assert_eq!(value, Some("1"), "{name}: {}", answer.chars().take(300).collect::<String>());
            }
        });
    }
}

#[test]
fn selects_nest_as_deep_as_in_mariadb() {
    with_stack(64 << 20, |session| {
        let mut answer = |n: usize| run(session, &format!("select {}", nested("(select ", "1", ")", n)));
        let (deepest, too_deep) = (answer(63), answer(64));
        assert!(deepest.ends_with("\n1\n"), "{deepest}");
        assert_eq!(too_deep, "ERROR 1473 (HY000): Too high level of nesting for select\n");
    });
}

#[test]
fn statements_that_run_each_other_end_somewhere() {
    for thread_stack in STACKS {
        with_stack(thread_stack, |session| {
            run(session, "set @a = 'execute immediate @a'");
            let answer = run(session, "execute immediate @a");
            assert!(answer.starts_with("ERROR 1436 ") || answer.starts_with("ERROR 1295 "), "{answer}");
            assert_eq!(run(session, "select 'alive'"), "alive\nalive\n");
        });
    }
}
