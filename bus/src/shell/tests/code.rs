//! Shell code in arguments, on stdin and in files.

use super::{check, foreign};

#[test]
fn reads_code_for_shells() {
    check(&[
        ("bash -c 'rm x'", "bash -c rm x ; rm x"),
        ("bash -lc 'rm x'", "bash -lc rm x ; rm x"),
        ("bash -o pipefail -ec 'rm x'", "bash -o pipefail -ec rm x ; rm x"),
        ("bash -euo pipefail -c 'rm x'", "bash -euo pipefail -c rm x ; rm x"),
        ("bash --norc -c 'rm $1 $0' a b", "bash --norc -c rm $1 $0 a b ; rm b a"),
        ("sh -c \"sh -c 'rm x'\"", "sh -c sh -c 'rm x' ; sh -c rm x ; rm x"),
        ("echo 'rm -rf /' | sh", "echo rm -rf / ; sh ; rm -rf /"),
        ("printf 'rm %s\\n' x | bash", "printf rm %s\\n x ; bash ; rm x"),
        ("eval 'rm x'; eval rm y", "eval rm x ; rm x ; eval rm y ; rm y"),
        ("X=rm sh -c '$X y'", "sh -c $X y ; rm y"),
        ("sh script.sh; source x; . y", "sh script.sh ; source x ; . y"),
        ("echo 'rm x' > s.sh; sh s.sh", "echo rm x ; sh s.sh ; rm x"),
        (
            "cat > s.sh <<'E'\nrm x\nE\nchmod +x s.sh && ./s.sh",
            "cat ; chmod +x s.sh ; ./s.sh ; rm x",
        ),
        ("echo cm0gLXJmIC8= | base64 -d | sh", "echo cm0gLXJmIC8= ; base64 -d ; sh ; rm -rf /"),
        (
            "eval \"$(echo cm0gLXJmIC8= | base64 -d)\"",
            "echo cm0gLXJmIC8= ; base64 -d ; eval rm -rf / ; rm -rf /",
        ),
        ("echo 726d2078 | xxd -r -p | sh", "echo 726d2078 ; xxd -r -p ; sh ; rm x"),
    ]);
    assert!(foreign("bash -c 'rm x'; sh script.sh; eval rm y").is_empty());
}
