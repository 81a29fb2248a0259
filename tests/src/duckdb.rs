//! DuckDB for Python, which reads what `hookbus export --format parquet` writes.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The first value of a query, computed by DuckDB.
pub fn first_value(sql: &str) -> i64 {
    let own = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = own.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"));
    let installed = target.join("duckdb/python");
    assert!(installed.is_dir(), "{} is missing; run tests/fetch-duckdb", installed.display());
    let output = Command::new("python3")
        .args(["-c", "import duckdb, sys; print(duckdb.sql(sys.argv[1]).fetchone()[0])", sql])
        .env("PYTHONPATH", installed)
        .output()
        .expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}
