//! Measures nanoseconds per digest, per plan cache hit and per parse, for the statements of sysbench: `cargo
//! run --release -p cohort-sql --example sql_speed`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use cohort_sql::{Digest, ParseOptions, PlanCache, PlanKey, parse};

fn main() {
    let c = "08566691963-88624912351-16662227201-46648573979-64646226163-77505759394-75470094713-41097360717-\
             15161106334-50535565977";
    let pad = "63188288836-92351140030-06390587585-66802097351-49282961843";
    let statements = [
        ("point select", "SELECT c FROM sbtest1 WHERE id=5013".to_string()),
        ("range", "SELECT c FROM sbtest1 WHERE id BETWEEN 5013 AND 5112 ORDER BY c".to_string()),
        ("index update", "UPDATE sbtest1 SET k=k+1 WHERE id=5013".to_string()),
        ("non index update", format!("UPDATE sbtest1 SET c='{c}' WHERE id=5013")),
        ("delete", "DELETE FROM sbtest1 WHERE id=5013".to_string()),
        ("insert", format!("INSERT INTO sbtest1 (id, k, c, pad) VALUES (5013, 5043, '{c}', '{pad}')")),
        ("slap insert", "INSERT INTO t1 (id,value) VALUES(NULL,1)".to_string()),
    ];
    let options = ParseOptions::default();
    let cache = PlanCache::new(1000, 1 << 20);
    println!("{:<18} {:>6} {:>10} {:>10} {:>10}", "statement", "bytes", "digest ns", "hit ns", "parse ns");
    for (name, sql) in &statements {
        let sql = sql.as_bytes();
        let mut literals = Vec::new();
        let digest = Digest::of(sql, &options, &mut literals).expect("a digest");
        let key = PlanKey { digest, session: 1 };
        cache.put(key, 1, Arc::new(0u64), 100);
        let digest_ns = nanos(|| {
            black_box(Digest::of(black_box(sql), &options, &mut literals));
        });
        let hit_ns = nanos(|| {
            black_box(cache.get(black_box(&key), 1));
        });
        let parse_ns = nanos(|| {
            black_box(parse(black_box(sql), &options)).expect("parses");
        });
        println!("{name:<18} {:>6} {digest_ns:>10.0} {hit_ns:>10.0} {parse_ns:>10.0}", sql.len());
    }
}

/// Returns the fastest of ten rounds.
fn nanos(mut call: impl FnMut()) -> f64 {
    const CALLS: u32 = 20_000;
    let mut best = f64::MAX;
    for _ in 0..10 {
        let start = Instant::now();
        for _ in 0..CALLS {
            call();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(CALLS));
    }
    best
}
