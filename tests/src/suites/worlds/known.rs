//! Differences that `docs/fidelity.md` says of warm programs: which question shows which row.
//!
//! Owns: the list. It is short, and every row is one of that page: a difference that is not there
//! is a fault.

const PARENT: &str = "parent process, CPU time that a shell charges";
const GROUP: &str = "process group and session, without a terminal";
const ENVIRON: &str = "`/proc/self/environ`";
const SEED: &str = "hash seed, where none is set";
const SOCKETS: &str = "two close-on-exec sockets with high numbers";
const UNHEARD: &str = "what a module reads at its import where no stand-in can hear it";
const COMMAND: &str = "`/proc/self/cmdline`, to its last byte";
const DEATH: &str = "the signal at the parent's death (`prctl`)";
const COLLECTOR: &str = "what is loaded ahead, and the collector";

/// Part of a question, and the row.
const KNOWN: &[(&str, &str)] = &[
    // The parent first: its group is asked for, too.
    ("getppid()", PARENT),
    ("RUSAGE_CHILDREN", PARENT),
    ("getpgid(0)", GROUP),
    ("getpgrp()", GROUP),
    ("getsid(0)", GROUP),
    ("/proc/self/environ", ENVIRON),
    ("type(sys.argv) is list", UNHEARD),
    ("list.__len__(sys.argv)", UNHEARD),
    ("list.__getitem__(sys.argv,", UNHEARD),
    // Sets, whose order is that of hashes.
    ("LocaleTime().timezone", SEED),
    ("packages_distributions()", SEED),
    ("listdir(\"/proc/self/fd\")", SOCKETS),
    ("listdir(\"/dev/fd\")", SOCKETS),
    ("/proc/self/cmdline", COMMAND),
    (".prctl(2,", DEATH),
    ("gc.get_count()", COLLECTOR),
    ("gc.get_stats()", COLLECTOR),
    (
        "/proc/self/cgroup",
        "control group without a limit, autogroup, keyring, LSM label, memory policy",
    ),
];

/// The row that says so of this question.
pub(super) fn row(question: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(part, _)| question.contains(part)).map(|(_, row)| *row)
}

#[cfg(test)]
mod tests {
    use super::{KNOWN, row};

    #[test]
    fn what_is_known_is_what_the_page_says() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/fidelity.md");
        let page = std::fs::read_to_string(page).unwrap();
        for (_, row) in KNOWN {
            assert!(page.contains(&format!("| {row} | differs |")), "{row}: no such row");
        }
        assert_eq!(row("os.getppid() == 1"), Some(super::PARENT));
        assert_eq!(row("os.getcwd()"), None);
    }
}
