//! The estimated memory of a cached plan must be close to its real memory.

mod world;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

use world::Server;

/// An allocator that counts the allocated bytes.
struct Counting;

static ALLOCATED: AtomicI64 = AtomicI64::new(0);

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of GlobalAlloc.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of GlobalAlloc.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn plans_take_about_what_they_are_said_to_take() {
    let mut server = Server::open(&world::disk()).expect("opens");
    let mut root = server.connect();
    let plans = &cohort_exec::SharedCaches::of(&server.db).plans;
    let columns: Vec<String> = (0..200).map(|n| format!("c{n} varchar(20)")).collect();
    root.ok("create database d");
    root.ok("use d");
    root.ok("create table t (id int not null primary key, k int, s varchar(100))");
    root.ok(&format!("create table wide (id int not null primary key, {})", columns.join(",")));
    root.ok("create view v as select a.id, b.k, concat(a.s, b.s, a.s, b.s) x from t a join t b using (id)");
    let sums = vec!["k + id"; 300].join(",");
    let conditions = vec!["k > 1 and s <> 'one'"; 100].join(" or ");
    let statements = [
        "select k from t where id = 1".to_owned(),
        "select * from wide".to_owned(),
        "select * from wide a join wide b using (id)".to_owned(),
        "select x from v where k > 1".to_owned(),
        "select count(*), max(s) from t a where exists (select 1 from wide w where w.id = a.k) group by k"
            .to_owned(),
        format!("select {sums} from t"),
        format!("select id from t where {conditions}"),
        "replace into t values (1, 2, 'x')".to_owned(),
        "update t set k = k + 1 where id = 1".to_owned(),
        "delete from t where s like 'x%'".to_owned(),
    ];
    for statement in &statements {
        root.run(statement);
        plans.clear();
        root.run(statement);
        let short: String = statement.chars().take(60).collect();
        let said = plans.bytes() as i64;
        assert!(said > 0, "no plan is kept of {short}");
        let before = ALLOCATED.load(Ordering::Relaxed);
        plans.clear();
        let taken = before - ALLOCATED.load(Ordering::Relaxed);
        println!("{taken:8} {said:8} {short}");
        assert!(said >= taken / 2 && said <= taken * 5 + 8192, "{taken} bytes, said to be {said}: {short}");
    }
}
