//! Differences that `docs/fidelity.md` says of warm programs: which question shows which row.

/// Part of a question, and the row.
const KNOWN: [(&str, &str); 6] = [
    ("os.getpgid(0) == os.getpid()", "process group, without a terminal"),
    ("getpgrp() == ", "process group, without a terminal"),
    ("sorted(sys.modules)", "`sys.modules` before the first import"),
    ("len(sys.modules)", "`sys.modules` before the first import"),
    ("list(sys.modules)[-1]", "`sys.modules` before the first import"),
    ("in sys.modules", "`sys.modules` before the first import"),
];

/// The row that says so of this question.
pub(super) fn row(question: &str, _world: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(part, _)| question.contains(part)).map(|(_, row)| *row)
}
