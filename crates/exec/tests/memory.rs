//! Memory of statements and transactions is accounted and limited, per session and in total.

mod support;

use std::sync::Arc;

use cohort_exec::{Database, Session};
use support::run;

const OVER: &str = "ERROR 1290 (HY000): The MariaDB server is running with the --max-session-mem-used=1000000 option \
                    so it cannot execute this statement\n";

/// Statements each of which needs more than a megabyte.
const GREEDY: &[&str] = &[
    "select a.k from t a, t b, t c order by a.k + b.k",
    "select a.k, repeat('x', 100) r from t a, t b, t c order by r limit 30000",
    "select distinct a.k + 300 * b.k + 90000 * c.k from t a, t b, t c",
    "select count(*) from t a, t b, t c group by a.k + 300 * b.k + 90000 * c.k",
    "select group_concat(repeat('x', 1000)) from t a, t b",
    "select count(distinct concat(a.k, '-', b.k, repeat('x', 300))) from t a, t b",
    "select json_arrayagg(repeat('x', 1000)) from t a, t b",
    "with y as (select repeat('x', 300) from t a, t b) select 1 from y p, y q limit 1",
    "select 1 from t where k in (select a.k + b.k * 60 + c.k * 3600 from t a, t b, t c)",
    "select concat(a.k, '-', b.k, repeat('x', 300)) from t a, t b union select 1",
    "select 1 intersect select concat(a.k, '-', b.k, repeat('x', 300)) from t a, t b",
    "select count(*) from json_table(concat('[', repeat('[1,2],', 20000), '1]'), '$[*]' \
     columns (nested path '$[*]' columns (a int path '$'))) j",
    "select count(*) from u x, u y where concat(x.s, 'a') = concat(y.s, 'a')",
    "set @a = repeat('x', 1100000)",
    "select @a := repeat('x', 1100000)",
    "insert into u select a.k * 300 + b.k + 100000, repeat('x', 100) from t a, t b",
    "update u set s = concat(s, 'y')",
    "select id from w where match(s) against(repeat('abc ', 20000) in boolean mode)",
    "insert into w select 1, group_concat('w', seq separator ' ') from seq_1_to_20000",
    "begin not atomic declare a, b mediumtext default repeat('x', 600000); end",
    "begin not atomic declare a mediumtext default ''; for n in 1 .. 120 do set a = concat(a, repeat('x', 10000)); end for; end",
    "begin not atomic for r in (select concat(s, 'y') s from u) do set @n = 1; end for; end",
];

fn filled() -> (Arc<Database>, Session) {
    let db = support::database_in_real_time();
    let mut session = support::session(&db, 1);
    run(&mut session, "create table t (id int not null primary key, k int)");
    run(&mut session, "create table u (id int not null primary key, s varchar(4000))");
    run(&mut session, "create table w (id int not null primary key, s mediumtext, fulltext (s))");
    assert_eq!(run(&mut session, "insert into w values (0, 'abc')"), "");
    let rows: Vec<String> = (1..=60).map(|n| format!("({n},{n})")).collect();
    assert_eq!(run(&mut session, &format!("insert into t values {}", rows.join(","))), "");
    assert_eq!(run(&mut session, "insert into u select id, repeat('x', 3000) from t"), "");
    let more = "insert into u select a.id * 100 + b.id, repeat('x', 3000) from t a, t b where b.id <= 9";
    assert_eq!(run(&mut session, more), "");
    (db, session)
}

#[test]
fn a_session_keeps_no_more_than_it_may() {
    let (db, mut session) = filled();
    for statement in GREEDY {
        run(&mut session, "set max_session_mem_used = 1000000");
        let answer = run(&mut session, statement);
        assert!(answer.ends_with(OVER), "{statement}: {}", answer.chars().take(300).collect::<String>());
        run(&mut session, "rollback");
        assert_eq!(session.process().memory().used(), 0, "{statement}");
        assert_eq!(run(&mut session, "select 'alive'"), "alive\nalive\n");
    }
    assert_eq!(db.processes.memory().used(), 0);
    // Without a limit they succeed and release all memory.
    run(&mut session, "set max_session_mem_used = default");
    for statement in GREEDY {
        let answer = run(&mut session, statement);
        assert!(!answer.contains("ERROR"), "{statement}: {}", answer.chars().take(300).collect::<String>());
    }
    run(&mut session, "set @a = null");
    assert!(session.process().memory().peak() > 1_000_000);
    session.reset();
    assert_eq!(db.processes.memory().used(), 0);
}

#[test]
fn the_rows_of_a_document_go_to_disk() {
    let (_, mut session) = filled();
    run(&mut session, "set tmp_memory_table_size = 16384");
    let document = r#"concat('[', repeat('{"v": "xxxxxxxxxx"},', 5000), '{}]')"#;
    let columns = "columns (a for ordinality, v text path '$.v')";
    let asked =
        format!("select count(*), sum(a), sum(length(v)) from json_table({document}, '$[*]' {columns}) j");
    assert_eq!(run(&mut session, &asked), "count(*)\tsum(a)\tsum(length(v))\n5001\t12507501\t50000\n");
}

#[test]
fn long_rows_that_are_merged_count() {
    let (_, mut session) = filled();
    run(&mut session, "set sort_buffer_size = 16384, max_session_mem_used = 4000000");
    let sorted =
        "select length(r) from (select concat(k, repeat('x', 200000)) r from t order by 1 limit 60) d";
    let asked = [
        sorted,
        "select length(r), row_number() over (order by r) from (select concat(k, repeat('x', 200000)) r from t) d",
    ];
    for statement in asked {
        let answer = run(&mut session, statement);
        assert!(answer.contains("max-session-mem-used=4000000"), "{statement}: {}", &answer[..100]);
        assert_eq!(session.process().memory().used(), 0, "{statement}");
    }
    run(&mut session, "set max_session_mem_used = default");
    for statement in asked {
        assert_eq!(run(&mut session, statement).lines().count(), 61, "{statement}");
        assert_eq!(session.process().memory().used(), 0, "{statement}");
    }
}

#[test]
fn all_sessions_together_keep_no_more_than_they_may() {
    let (db, mut a) = filled();
    let mut b = support::session(&db, 2);
    run(&mut b, "set @b = repeat('x', 3000000)");
    db.processes.memory().set_limit(4_000_000);
    let out = "ERROR 1041 (HY000): Out of memory.\n";
    assert!(run(&mut a, "select a.k from t a, t b, t c order by a.k + b.k").ends_with(out));
    run(&mut b, "set @b = null");
    assert!(run(&mut a, "select a.k from t a, t b order by a.k + b.k").starts_with("k\n"));
}

#[test]
fn a_transaction_holds_its_memory_until_it_ends_and_others_see_it() {
    let (db, mut a) = filled();
    let mut b = support::session(&db, 2);
    run(&mut a, "begin");
    run(&mut a, "select * from u for update");
    assert!(a.process().memory().used() > 64_000, "locks count");
    assert_eq!(run(&mut a, "update u set s = concat(s, 'y')"), "");
    let held = a.process().memory().used();
    assert!(held > 1_500_000, "{held}");
    let seen = run(
        &mut b,
        "select memory_used, max_memory_used >= memory_used m from information_schema.processlist where id = 1",
    );
    assert_eq!(seen, format!("memory_used\tm\n{held}\t1\n"));
    // The status variable has the state of the session itself, too.
    let shown = run(&mut a, "show status like 'Memory_used'");
    let shown: usize = shown.trim_end().rsplit('\t').next().and_then(|n| n.parse().ok()).expect("a number");
    assert!((held + 1..held + 65_536).contains(&(shown as _)), "{shown}, {held}");
    run(&mut a, "commit");
    assert_eq!(a.process().memory().used(), 0);
}

#[test]
fn a_common_table_is_planned_and_run_once() {
    let (_, mut session) = filled();
    let mut chain = String::from("with c0 as (select 1 a)");
    for n in 1..=25 {
        chain += &format!(", c{n} as (select x.a from c{0} x, c{0} y)", n - 1);
    }
    assert_eq!(run(&mut session, &format!("{chain} select count(*) from c25")), "count(*)\n1\n");
    let explained = run(&mut session, &format!("explain {chain} select count(*) from c25"));
    assert!(explained.lines().count() < 60, "{explained}");
    let twice = "with r as (select rand() x) select a.x = b.x from r a, r b";
    assert!(run(&mut session, twice).ends_with("\n1\n"));
    let columns = "with p (x, y) as (select 1, 2), q as (select y, x from p) select q.x, p.y from p, q, p z";
    assert_eq!(run(&mut session, columns), "x\ty\n1\t2\n");
}

#[test]
fn plans_that_sessions_share_are_bounded_by_what_they_take() {
    let (db, mut session) = filled();
    let plans = &cohort_exec::SharedCaches::of(&db).plans;
    let wide = |n: usize| {
        format!("select {} from t where id = {}", vec![format!("k + id as a{n}"); 500].join(","), n % 60 + 1)
    };
    db.memory_limits().set(64 << 20);
    for n in 0..300 {
        assert!(run(&mut session, &wide(n)).starts_with(&format!("a{n}\t")), "{n}");
        assert!(plans.bytes() <= 4 << 20, "{} bytes of plans", plans.bytes());
    }
    assert!((1..100).contains(&plans.len()), "{} plans", plans.len());
    db.memory_limits().set(1 << 20);
    assert!(plans.bytes() <= 64 << 10);
    assert_eq!(run(&mut session, "select 1"), "1\n1\n");
}

#[test]
fn sessions_share_what_they_prepare_and_it_counts_once() {
    let (db, mut first) = filled();
    let used = || db.processes.memory().used();
    let before = used();
    let text = format!("prepare s from 'select {} from t where id = ?'", vec!["k + 1"; 2000].join(","));
    assert_eq!(run(&mut first, &text), "");
    let of_one = used() - before;
    assert!(of_one > 100_000, "{of_one}");
    let mut others: Vec<_> = (2..60).map(|n| support::session(&db, n)).collect();
    for other in &mut others {
        assert_eq!(run(other, &text), "");
    }
    assert_eq!(used() - before, of_one, "the text counts once");
    run(&mut first, "execute s using 7");
    let with_plan = used() - before;
    assert!(with_plan > of_one, "{with_plan}");
    for other in &mut others {
        assert!(run(other, "execute s using 7").ends_with("8\n"));
    }
    assert_eq!(used() - before, with_plan, "so does the plan");
    // A changed catalog makes new plans necessary.
    run(&mut first, "create table later (a int)");
    run(&mut first, "execute s using 7");
    others.iter_mut().for_each(|other| drop(run(other, "execute s using 8")));
    assert_eq!(used() - before, with_plan, "an unusable plan is freed");
    drop(first);
    assert_eq!(used() - before, with_plan, "others still have it");
    assert!(run(&mut others[0], "execute s using 9").ends_with("10\n"));
    others.clear();
    assert_eq!(used(), before);
}

#[test]
fn prepared_statements_are_bounded_for_each_session_and_for_all() {
    let (db, mut session) = filled();
    let prepare = |n: usize| {
        format!("prepare s{n} from 'select {} from t where id = {n}'", vec!["k + 1"; 250].join(","))
    };
    run(&mut session, "set max_session_mem_used = 1000000");
    let refused = (0..100).find_map(|n| {
        let answer = run(&mut session, &prepare(n));
        (!answer.is_empty()).then_some((n, answer))
    });
    let (count, answer) = refused.expect("a megabyte is full");
    assert!((3..20).contains(&count), "{count}");
    assert_eq!(answer, OVER);
    run(&mut session, "deallocate prepare s0");
    assert_eq!(run(&mut session, &prepare(count)), "", "there is room again");
    session.reset();
    assert_eq!(db.processes.memory().used(), 0);
    run(&mut session, "set max_session_mem_used = default");
    db.memory_limits().set(2_000_000);
    let refused = (0..100).map(|n| run(&mut session, &prepare(n))).find(|answer| !answer.is_empty());
    assert_eq!(refused.expect("all is full"), "ERROR 1041 (HY000): Out of memory.\n");
    assert_eq!(run(&mut session, "select 1"), "1\n1\n");
}

/// Returns texts of some 300 KB whose syntax trees and plans take many times their length.
fn long_texts() -> Vec<(&'static str, String)> {
    let list = |item: &str, count: usize| vec![item; count].join(",");
    vec![
        ("list", format!("select 1 from t where k in ({})", list("1", 150_000))),
        ("rows", format!("insert into t values {}", list("(1,1)", 50_000))),
        ("columns", format!("select count(*) from t where k in ({})", list("t.k", 75_000))),
        ("strings", format!("select 1 from t where k in ({})", list("'a'", 75_000))),
        ("calls", format!("select concat({})", list("abs(1)", 43_000))),
        ("pairs", format!("select 1 from t where (k,k) in ({})", list("(1,1)", 50_000))),
        ("unfinished", format!("select {}", list("1", 150_000))),
        ("signs", format!("select 1 from t where k in ({})", list("-1", 100_000))),
    ]
}

#[test]
fn a_statement_of_many_values_is_charged_before_it_is_parsed() {
    let (db, mut session) = filled();
    run(&mut session, "set max_session_mem_used = 10000000");
    let over = OVER.replace("1000000", "10000000");
    for (name, text) in long_texts() {
        let quoted = text.replace('\'', "''");
        let ways = [text, format!("prepare s from '{quoted}'"), format!("execute immediate '{quoted}'")];
        for sql in ways {
            let answer = run(&mut session, &sql);
            assert_eq!(answer, over, "{name}: {}", sql.chars().take(60).collect::<String>());
            assert_eq!(session.process().memory().used(), 0, "{name}");
        }
    }
    // A long value is one token.
    let long = format!("select length('{}')", "x".repeat(2_000_000));
    assert!(run(&mut session, &long).ends_with("\n2000000\n"));
    assert_eq!(run(&mut session, "select 'alive'"), "alive\nalive\n");
    run(&mut session, "set max_session_mem_used = default");
    db.processes.memory().set_limit(10_000_000);
    for (name, text) in long_texts() {
        assert_eq!(run(&mut session, &text), "ERROR 1041 (HY000): Out of memory.\n", "{name}");
    }
    db.processes.memory().set_limit(u64::MAX);
    assert_eq!(db.processes.memory().used(), 0);
}
