//! What a function's head promises: a parameter is one thing, and `is_` asks.
//!
//! A tuple as a parameter keeps the count of parameters small and the names unsaid. A function
//! that is named `is_*` or `has_*` answers yes or no and changes nothing. Functions of an `impl`
//! of a trait are left out, as the trait gives their heads, and so are tests.
//!
//! | file | what |
//! |---|---|
//! | `read` | the heads of a file's functions |
//! | `known` | how many are left, and where |

mod known;
mod read;

use std::collections::BTreeMap;

use known::Left;
use read::Head;

use super::Found;
use super::source::{Language, Source};

/// What begins a name that asks.
const ASKING: [&str; 2] = ["is_", "has_"];

/// The findings of one place: lines that can be shown as faults.
#[derive(Debug, Default)]
struct Findings {
    tuples: Vec<String>,
    names: Vec<String>,
}

/// Checks all functions of the product, the bench, the suites and the chores.
pub(crate) fn check(sources: &[Source], found: &mut Found) {
    check_beside(sources, known::LEFT, found);
}

fn check_beside(sources: &[Source], left: &[Left], found: &mut Found) {
    let mut places: BTreeMap<&str, Findings> = BTreeMap::new();
    for source in sources.iter().filter(|source| is_checked(source)) {
        let (home, _) = source.path.split_once("/src/").unwrap_or_default();
        match read::heads(&source.text) {
            Ok(heads) => places.entry(home).or_default().add(source, &heads),
            Err(error) => found.fault(source, 1, &error),
        }
    }
    for (place, findings) in places {
        let known = left.iter().find(|left| left.place == place);
        let (tuples, names) = known.map_or((0, 0), |left| (left.tuples, left.names));
        compare(place, "tuples", findings.tuples, tuples, found);
        compare(place, "names", findings.names, names, found);
    }
}

/// A count that is exceeded is every finding's fault, one that is too high is the table's.
fn compare(place: &str, what: &str, findings: Vec<String>, left: usize, found: &mut Found) {
    let count = findings.len();
    if count > left {
        found.faults.extend(findings);
    } else if count < left {
        found.faults.push(format!("{place}: {count} {what} are left: write that into `known.rs`"));
    } else if count > 0 {
        found.notes.push(format!("{place}: {count} {what} are left (`functions/known.rs`)"));
    }
}

impl Findings {
    fn add(&mut self, source: &Source, heads: &[Head]) {
        let path = &source.path;
        for Head { name, line, tuples, changes, says } in heads {
            let tuple = || {
                format!("{path}:{line}: `{name}` takes a tuple: name the pair, or take it apart")
            };
            self.tuples.extend(std::iter::repeat_with(tuple).take(*tuples));
            if ASKING.iter().any(|word| name.starts_with(word)) && (*changes || !says) {
                self.names.push(format!(
                    "{path}:{line}: `{name}` asks and changes nothing, or has a verb as its name"
                ));
            }
        }
    }
}

fn is_checked(source: &Source) -> bool {
    let Some((home, file)) = source.path.split_once("/src/") else { return false };
    let is_ours = home.starts_with("crates/") || ["bench", "tests", "xtask"].contains(&home);
    let is_test =
        file.starts_with("tests/") || file.contains("/tests/") || source.stem() == "tests";
    source.language == Language::Rust && is_ours && !is_test
}

#[cfg(test)]
mod tests;
