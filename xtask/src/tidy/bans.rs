//! Calls and words that a place must not hold, each with what to use instead. The invariants of
//! the design as absences.

use super::Found;
use super::source::{Language, Line, Source};

/// Where a ban holds.
#[derive(Clone, Copy)]
enum Reach {
    /// The product's code, tests left out.
    Product,
    /// The product's code and its tests.
    Everywhere,
    /// Tests only.
    Tests,
}

/// One rule.
struct Ban {
    /// The beginnings of the paths for which it holds.
    inside: &'static [&'static str],
    /// The beginnings of the paths for which it does not.
    except: &'static [&'static str],
    reach: Reach,
    /// What must not stand there.
    words: &'static [&'static str],
    /// What to do instead.
    instead: &'static str,
}

/// A sleep that stays says why in a comment with this word, on its line or just above it.
const SLEEPS: &str = "sleeps:";
/// How many lines above a sleep its reason may stand.
const SLEEPS_ABOVE: usize = 3;

const WAIT: &str = "wait on a mark with a bounded poll; a sleep that stays says why: `sleeps: ...`";

/// Where languages are named besides the table of runtimes: a shim of one version manager, an
/// alias in `hob.toml`, and rooms of the binary that show one language from within.
const LANGUAGES: &[&str] = &[
    "crates/hob-gate/",
    "crates/hob-runtimes/",
    "crates/hob-resolve/src/pyenv/",
    "crates/hob-daemon/src/project/section.rs",
    "crates/hob-client/src/hook.rs",
    "crates/hob/src/show/samples.rs",
    "crates/hob/src/show/waterfall.rs",
    "crates/hob/src/verbs/doctor/commands.rs",
    "crates/hob/src/verbs/hooks/adopt/",
    "crates/hob/src/verbs/verify/",
    "crates/hob/src/verbs/why/",
];

/// Who writes to standard output or standard error, besides `hob_os::say`, and why.
const DOORS: &[&str] = &[
    // The door itself.
    "crates/hob-os/src/say/",
    // A build script talks to cargo by printing.
    "crates/hob/build.rs",
    "crates/hob-runtimes/build/",
    // Programs of their own, which show what a library does.
    "crates/hob-actor/examples/",
    // Asks what the stream is, and writes nothing.
    "crates/hob/src/show/style.rs",
    // clap's pages of help, which hold nothing but hob's own words.
    "crates/hob/src/cli/help.rs",
    // A shell that completes reads it, not a person.
    "crates/hob/src/cli/complete.rs",
];

const BANS: &[Ban] = &[
    Ban {
        inside: &["crates/hob-core/src/", "crates/hob-wire/src/"],
        except: &[],
        reach: Reach::Product,
        words: &[
            "Instant",
            "SystemTime",
            "std::fs",
            "std::net",
            "std::process",
            "std::thread",
            "std::os",
            "std::env",
            "Mutex",
            "RwLock",
            "async fn",
            ".await",
            "tokio",
            "rustix",
        ],
        instead: "the core has no clock, no I/O, no locks: time is an argument, effects go back",
    },
    Ban {
        inside: &["crates/"],
        except: DOORS,
        reach: Reach::Product,
        words: &[
            "println!",
            "print!(",
            "eprintln!",
            "eprint!(",
            "io::stdout()",
            "io::stderr()",
            "anstream::stdout()",
            "anstream::stderr()",
            "io::write(process::stdio()",
            "File::from_raw_fd(1)",
            "File::from_raw_fd(2)",
            "\"/dev/stderr\"",
            "\"/dev/stdout\"",
            ".print()",
        ],
        instead: "text reaches a person by hob_os::say, which escapes what a terminal obeys",
    },
    Ban {
        inside: &["crates/", "runtimes/", "tests/"],
        except: &[],
        reach: Reach::Product,
        words: &[
            "waitpid(-1",
            "waitpid(None",
            "WaitId::All",
            "os.wait()",
            "os.wait3(",
            "os.wait4(-1",
        ],
        instead: "wait for the one process that you started, by its pidfd or its number",
    },
    Ban {
        inside: &["crates/", "xtask/", "bench/"],
        except: &["xtask/src/tidy/bans.rs"],
        reach: Reach::Everywhere,
        words: &["process::exit("],
        instead: "return an exit code from main",
    },
    Ban {
        inside: &["crates/"],
        except: &["crates/hob-os/", "crates/hob-entryfork/"],
        reach: Reach::Everywhere,
        words: &["libc::fork", "rustix::runtime"],
        instead: "the daemon never forks without exec: zygotes fork, in their own language",
    },
    Ban {
        inside: &["crates/"],
        except: &["crates/hob-os/", "crates/hob-entryfork/", "crates/hob-client/src/cold.rs"],
        reach: Reach::Product,
        words: &["execve(", "execveat(", "execvp(", ".exec()"],
        instead: "only cold.rs executes the caller's program in the caller's place",
    },
    Ban {
        inside: &["crates/hob/src/main.rs", "crates/hob-client/src/"],
        except: &[],
        reach: Reach::Product,
        words: &["hob_daemon", "hob_core", "tokio", "clap", "serde"],
        instead: "the way of a call pays for nothing that it does not use: hob-wire and hob-os, and hob-resolve to run cold",
    },
    Ban {
        inside: &["crates/"],
        except: LANGUAGES,
        reach: Reach::Product,
        words: &[
            "python", "Python", "PYTHON", "ruby", "Ruby", "RUBY", "nodejs", "jvm", "Jvm", "JVM",
        ],
        instead: "languages stand in crates/hob-runtimes: ask the program's row",
    },
    Ban {
        inside: &["crates/", "xtask/", "bench/", "tests/"],
        // Tests that compile one source file of the product, or of the fuzzers, a second time.
        except: &[
            "crates/hob-actor/tests/inbox.rs",
            "crates/hob-actor/tests/rings.rs",
            "crates/hob-wire/tests/bencode_replay.rs",
            "crates/hob-wire/tests/fuzz_replay.rs",
            "xtask/src/tidy/bans.rs",
        ],
        reach: Reach::Everywhere,
        words: &["#[path"],
        instead: "a folder is a module: give it a mod.rs that declares its files",
    },
    Ban {
        inside: &["tests/", "crates/"],
        except: &[],
        reach: Reach::Tests,
        words: &["thread::sleep(", "time::sleep("],
        instead: WAIT,
    },
    Ban {
        // In Rust tests these words stand in programs under test, which may sleep.
        inside: &["runtimes/"],
        except: &[],
        reach: Reach::Tests,
        words: &["time.sleep("],
        instead: WAIT,
    },
];

/// Checks one file.
pub(crate) fn check(source: &Source, found: &mut Found) {
    if source.language == Language::Other {
        return;
    }
    for ban in BANS.iter().filter(|ban| holds_in(ban, &source.path)) {
        for line in source.lines() {
            check_line(ban, source, &line, found);
        }
    }
    unsafe_code(source, found);
}

fn holds_in(ban: &Ban, path: &str) -> bool {
    let begins = |list: &[&str]| list.iter().any(|start| path.starts_with(start));
    begins(ban.inside) && !begins(ban.except)
}

fn check_line(ban: &Ban, source: &Source, line: &Line<'_>, found: &mut Found) {
    let reached = match ban.reach {
        Reach::Product => !line.tested,
        Reach::Everywhere => true,
        Reach::Tests => line.tested && !has_reason(source, line.number),
    };
    if !reached {
        return;
    }
    for word in ban.words.iter().filter(|word| stands_in(word, line.code)) {
        found.fault(source, line.number, &format!("`{word}`: {}", ban.instead));
    }
}

/// Whether a word stands in a line and is not the end of a longer name.
fn stands_in(word: &str, code: &str) -> bool {
    let named = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let starts_named = word.starts_with(named);
        !(starts_named && before.is_some_and(named))
    })
}

/// Whether a reason stands at or just above a line.
fn has_reason(source: &Source, number: usize) -> bool {
    let skip = number.saturating_sub(SLEEPS_ABOVE + 1);
    let near = source.text.lines().skip(skip).take(number - skip);
    near.into_iter().any(|line| line.contains(SLEEPS))
}

/// The lines of the binary's entry point that may be unsafe: its symbol, and its arguments.
const ENTRY_POINT_LINES: usize = 2;

/// The crates that may be unsafe anywhere: what they are for is.
const UNSAFE_CRATES: [&str; 3] = ["crates/hob-os/", "crates/hob-entryfork/", "crates/hob-gate/"];

/// The modules outside these crates that may be unsafe, each with its reason at its head and under Miri
/// (but for `memory.rs`: Miri maps no files).
const UNSAFE_MODULES: [&str; 4] = [
    "crates/hob-actor/src/memory/parcel.rs",
    "crates/hob-actor/src/memory/tasks.rs",
    "crates/hob-actor/src/memory/waker.rs",
    "crates/hob-actor/src/link/rings/memory.rs",
];
/// What such a module says, so that the compiler holds all others to having none.
const UNSAFE_REASON: &str = "#![expect(unsafe_code, reason = ";

/// `unsafe` lives in three crates, in the binary's entry point, and in a few modules of hob-actor.
fn unsafe_code(source: &Source, found: &mut Found) {
    if source.language != Language::Rust
        || UNSAFE_CRATES.iter().any(|of| source.path.starts_with(of))
        || source.path.starts_with("fuzz/")
    {
        return;
    }
    if UNSAFE_MODULES.contains(&source.path.as_str()) {
        if !source.text.contains(UNSAFE_REASON) {
            found.fault(source, 1, "an unsafe module says why: `#![expect(unsafe_code, reason)]`");
        }
        return;
    }
    let entry_point = source.path == "crates/hob/src/main.rs";
    let allowed = if entry_point { ENTRY_POINT_LINES } else { 0 };
    let uses = |line: &Line<'_>| {
        ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "unsafe("]
            .into_iter()
            .any(|word| stands_in(word, line.code) && !line.code.contains('"'))
    };
    for line in source.lines().filter(uses).skip(allowed) {
        found.fault(source, line.number, "`unsafe` lives in hob-os, with a SAFETY comment");
    }
    let library = source.path.starts_with("crates/") && source.path.ends_with("/src/lib.rs");
    // A crate with unsafe modules cannot forbid; the workspace denies, and each module says why.
    let has_modules = UNSAFE_MODULES.iter().any(|module| {
        source.path.strip_suffix("lib.rs").is_some_and(|folder| module.starts_with(folder))
    });
    if library && !has_modules && !source.text.contains("#![forbid(unsafe_code)]") {
        found.fault(
            source,
            1,
            "a library other than hob-os and hob-entryfork says `#![forbid(unsafe_code)]`",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::made_up;
    use super::*;

    fn faults(path: &str, text: &str) -> usize {
        let mut found = Found::default();
        check(&made_up(path, text), &mut found);
        found.faults.len()
    }

    #[test]
    fn the_core_has_no_clock_but_its_tests_may_talk_of_one() {
        let core = "crates/hob-core/src/pool.rs";
        assert_eq!(faults(core, "let now = Instant::now();\n"), 1);
        assert_eq!(faults(core, "// Instant::now is not for us.\n"), 0);
        assert_eq!(faults(core, "#[cfg(test)]\nmod t { use std::fs; }\n"), 0);
        assert_eq!(faults("crates/hob-daemon/src/owner.rs", "let now = Instant::now();\n"), 0);
    }

    #[test]
    fn there_is_one_door_to_a_person() {
        for line in [
            "println!(\"a\");\n",
            "let _ = write!(std::io::stderr(), \"a\");\n",
            "let mut out = io::stdout().lock();\n",
            "rustix::io::write(process::stdio()[1], b\"a\");\n",
        ] {
            assert_eq!(faults("crates/hob-daemon/src/owner.rs", line), 1, "{line}");
            assert_eq!(faults("crates/hob/src/verbs/last.rs", line), 1, "{line}");
            assert_eq!(faults("crates/hob-os/src/say/mod.rs", line), 0, "{line}");
        }
        let own_output = "command.stdout(rustix::io::dup(rustix::stdio::stderr())?);\n";
        assert_eq!(faults("crates/hob/src/verbs/ab/run.rs", own_output), 0);
    }

    #[test]
    fn a_sleeping_test_needs_a_reason() {
        let sleep = "std::thread::sleep(STEP);\n";
        assert_eq!(faults("tests/cli/run.rs", sleep), 1);
        assert_eq!(faults("tests/cli/run.rs", &format!("// sleeps: between polls.\n{sleep}")), 0);
        assert_eq!(faults("crates/hob-daemon/src/owner.rs", sleep), 0);
    }

    #[test]
    fn unsafe_lives_in_two_crates_and_one_entry_point() {
        let block = "let a = unsafe { b() };\n";
        assert_eq!(faults("crates/hob-entryfork/src/vfork/child.rs", block), 0);
        assert_eq!(faults("crates/hob-os/src/uds.rs", block), 0);
        assert_eq!(faults("crates/hob/src/main.rs", block), 0);
        assert_eq!(faults("crates/hob/src/main.rs", &block.repeat(3)), 1);
        assert_eq!(faults("crates/hob-daemon/src/owner.rs", block), 1);
        assert_eq!(faults("crates/hob-new/src/lib.rs", "//! New.\n"), 1);
        let reason = "#![expect(unsafe_code, reason = \"so\")]\n";
        assert_eq!(faults("crates/hob-actor/src/memory/tasks.rs", &format!("{reason}{block}")), 0);
        assert_eq!(faults("crates/hob-actor/src/memory/tasks.rs", block), 1);
        assert_eq!(faults("crates/hob-actor/src/shard/mod.rs", block), 1);
        assert_eq!(faults("crates/hob-actor/src/lib.rs", "//! Actors.\n"), 0);
    }

    #[test]
    fn the_way_of_a_call_does_not_know_the_daemon() {
        assert_eq!(faults("crates/hob-client/src/call.rs", "use hob_daemon::Owner;\n"), 1);
        assert_eq!(faults("crates/hob-client/src/call.rs", "use hob_wire::call::Call;\n"), 0);
    }

    #[test]
    fn nobody_waits_for_any_child() {
        assert_eq!(faults("runtimes/python/worker/zygote.py", "os.waitpid(-1, 0)\n"), 1);
        assert_eq!(faults("runtimes/python/worker/zygote.py", "os.waitpid(pid, 0)\n"), 0);
    }
}
