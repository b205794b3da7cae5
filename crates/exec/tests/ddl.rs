//! Golden SQL scripts of `tests/ddl_scripts`; `UPDATE_GOLDEN=1` rewrites them.

mod world;

use std::path::Path;

#[test]
fn scripts() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ddl_scripts");
    let mut scripts: Vec<_> = std::fs::read_dir(dir)
        .expect("the scripts are there")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "sql"))
        .collect();
    scripts.sort();
    for script in scripts {
        world::run_script(&script);
    }
}
