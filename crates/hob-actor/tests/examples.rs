//! Each example says what it does and takes, before it does anything.
#![expect(clippy::unwrap_used, reason = "a test fails where its setup does")]

use std::path::PathBuf;
use std::process::{Command, Output};

const EXAMPLES: [&str; 6] = ["ask", "ring_ask", "ring_tell", "remote_ask", "ipc_ring", "ipc_storm"];

/// Runs an example as cargo has built it beside this test.
fn run(name: &str, arguments: &[&str]) -> Output {
    let test = std::env::current_exe().unwrap();
    let profile: PathBuf = test.ancestors().nth(2).unwrap().into();
    let example = profile.join("examples").join(name);
    assert!(example.exists(), "{}: cargo test without --test builds it", example.display());
    Command::new(example).args(arguments).output().unwrap()
}

#[test]
fn help_says_what_an_example_does_and_takes() {
    for name in EXAMPLES {
        for word in ["--help", "-h"] {
            let output = run(name, &[word]);
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{name}: {text}");
            for wanted in [format!("usage: {name} "), "--rounds N".into(), "JSON".into()] {
                let storm = name == "ipc_storm" && wanted.starts_with("--rounds");
                assert!(storm || text.contains(&wanted), "{name}: {text}");
            }
        }
    }
}

#[test]
fn an_option_that_there_is_not_is_refused_with_the_next_step() {
    for name in EXAMPLES {
        let output = run(name, &["--runds", "1"]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{name}");
        assert!(text.contains("there is no --runds; --help lists"), "{name}: {text}");
    }
}

#[test]
fn a_small_run_prints_one_line_of_json() {
    for name in ["ask", "ring_ask", "ring_tell"] {
        let output = run(name, &["--rounds", "2", "--nodes", "2", "--messages", "3"]);
        let text = String::from_utf8(output.stdout).unwrap();
        let begins = format!("{{\"example\":\"{name}\",");
        assert!(output.status.success() && text.starts_with(&begins), "{name}: {text}");
    }
    let remote = run("remote_ask", &["--rounds", "2"]);
    let text = String::from_utf8(remote.stdout).unwrap();
    assert!(remote.status.success() && text.contains("\"hops\":2"), "{text}");
}

/// The number behind a name in the line that an example prints.
fn number(line: &str, name: &str) -> u64 {
    let (_, rest) = line.split_once(&format!("\"{name}\":")).unwrap_or_else(|| panic!("{line}"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[test]
fn a_chain_of_asks_goes_round_a_ring_of_processes_however_long_it_is_and_memory_stays_flat() {
    for more in [&[][..], &["--shared-memory"][..]] {
        // Once round, again and again; and one chain that is longer than any mailbox.
        for (nodes, rounds, long) in [(2, 2000, 1), (5, 1000, 1), (20, 200, 1), (3, 2000, 2000)] {
            let [nodes_word, rounds_word, long_word] =
                [nodes, rounds, long].map(|number: u64| number.to_string());
            let mut words = vec!["--nodes", &nodes_word, "--rounds", &rounds_word];
            words.extend(["--ask", &long_word]);
            words.extend(more);
            let output = run("ipc_ring", &words);
            let line = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{words:?}: {line}");
            assert_eq!(number(&line, "check"), 2 * nodes * rounds, "{words:?}: {line}");
            let grown = number(&line, "grown_kib");
            assert!(long > 1 || grown < 512 * nodes, "{words:?}: {line}");
        }
    }
}

#[test]
fn a_chain_of_asks_that_is_longer_than_its_time_ends_as_a_whole() {
    // So many asks take far longer than a millisecond.
    let output =
        run("ipc_ring", &["--nodes", "3", "--rounds", "20000", "--ask", "20000", "--within", "1"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && text.contains("Expired"), "{text}");
}
