//! Batches of rows between operators are limited in bytes: a statement over long texts holds few rows at a
//! time.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use support::run;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// An allocator that counts the live bytes of each thread.
struct Counting;

fn add(bytes: isize) {
    let live = LIVE.get() + bytes;
    LIVE.set(live);
    PEAK.set(PEAK.get().max(live));
}

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: the caller upholds the contract of GlobalAlloc.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        // SAFETY: the pointer came from `alloc` above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Statements over 3,600 rows of 100,000 bytes, with their results.
const STATEMENTS: &[(&str, &str)] = &[
    (
        "select count(*), sum(length(s)) from (select repeat('x', 100000) s from t a, t b limit 10000) d",
        "3600\t360000000",
    ),
    ("select count(*), sum(length(s)) from (select concat(s) s from l, t limit 10000) d", "3600\t360000000"),
    ("select count(*), sum(length(s)) from (select l.s from l, t limit 10000) d", "3600\t360000000"),
    (
        "select count(*), sum(length(s)) from (select repeat('x', 100000) s from t a, t b union all select s from l) d",
        "3660\t366000000",
    ),
    ("select count(*), sum(length(v.s)) from l v left join l w on v.s = w.s", "3600\t360000000"),
    ("select count(*), sum(length(s)) from (select s from l limit 100) d", "60\t6000000"),
    ("select count(*) from t a, t b where repeat('x', 100000 + a.k) > 'a'", "3600"),
    // Short rows with long keys and extreme values.
    (
        "select count(*) from (select a.k * 100 + b.k k from t a, t b limit 10000) x \
         join (select a.k * 100 + b.k k from t a, t b limit 10000) y \
         on concat(repeat('x', 100000), x.k) = concat(repeat('x', 100000), y.k)",
        "3600",
    ),
    (
        "select count(*) from t a, t b where concat(repeat('x', 100000), b.k) in (select s from l) or a.k < 0",
        "0",
    ),
    (
        "select count(*) from (select a.k from t a, t b group by concat(repeat('x', 100000), a.k, '.', b.k)) d",
        "3600",
    ),
    (
        "select count(*), sum(length(m)) from (select max(concat(repeat('x', 100000), a.k % 10)) m from t a, t b group by a.k * 100 + b.k) d",
        "3600\t360003600",
    ),
];

#[test]
fn long_texts_come_in_small_batches() {
    let db = support::database_in_real_time();
    let mut session = support::session(&db, 1);
    run(&mut session, "create table t (id int not null primary key, k int)");
    run(&mut session, "create table l (id int not null primary key, s longtext)");
    assert_eq!(run(&mut session, "insert into t select seq, seq from seq_1_to_60"), "");
    assert_eq!(run(&mut session, "insert into l select seq, repeat('x', 100000) from seq_1_to_60"), "");
    run(&mut session, "set tmp_memory_table_size = 1000000, join_buffer_size = 1000000");
    for (statement, expected) in STATEMENTS {
        PEAK.set(LIVE.get());
        let before = LIVE.get();
        let answer = run(&mut session, statement);
        assert_eq!(answer.lines().nth(1), Some(*expected), "{statement}: {answer}");
        let held = PEAK.get() - before;
        assert!(held < 32_000_000, "{held} bytes: {statement}");
    }
}

#[test]
fn a_wide_row_of_long_texts_is_charged() {
    let db = support::database_in_real_time();
    let mut session = support::session(&db, 1);
    run(&mut session, "set max_session_mem_used = 20000000");
    let wide = |columns| format!("select {}", vec!["repeat('x', 100000)"; columns].join(", "));
    assert!(run(&mut session, &wide(300)).starts_with("ERROR 1290"));
    for _ in 0..10 {
        assert!(run(&mut session, &wide(50)).len() > 5_000_000, "what is sent is given back");
    }
}
