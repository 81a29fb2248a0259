//! How long reading a shell line takes: `cargo run --release --example shell_timing`.

use std::hint::black_box;
use std::io::{self, Write};
use std::time::Instant;

use hookbus::shell::{Start, read};

const LINES: &[&str] = &[
    "git push --force origin main",
    "cat a.txt | grep -v foo | sort | uniq -c | head -5",
    "cd /repo && cargo test --workspace 2>&1 | tail -20",
    "git add -A && git commit -m \"$(cat <<'EOF'\nFix it\nEOF\n)\" && git push",
    "for f in $(git ls-files '*.rs'); do rustfmt \"$f\"; done",
    "curl -fsSL https://example.org/install | sudo bash -s -- -y",
];

const ROUNDS: u32 = 20_000;

fn main() -> io::Result<()> {
    let start = Start { home: Some("/home/u".to_owned()), variables: Vec::new() };
    let mut out = io::stdout().lock();
    for line in LINES {
        let begin = Instant::now();
        for _ in 0..ROUNDS {
            black_box(read(black_box(line), &start));
        }
        let each = begin.elapsed() / ROUNDS;
        writeln!(out, "{each:>10.2?}  {}", line.replace('\n', "\\n"))?;
    }
    Ok(())
}
