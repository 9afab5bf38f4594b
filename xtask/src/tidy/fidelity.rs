//! `docs/fidelity.md` says of each thing how a warm call has it, and which test shows it: every
//! row is of a known kind and names tests that exist, and the counts in the page are those of its
//! rows.
//!
//! Deliberately not here: whether the tests pass, which running them shows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};

use super::Found;
use super::source::{Language, Source};

const PAGE: &str = "docs/fidelity.md";
const PROBES: &str = "runtimes/python/tests/probes";
/// What a row may say. What differs has a test too, of just that difference.
const KINDS: [&str; 5] = ["reproduced", "keyed", "compared", "cold", "differs"];

/// Checks the page against the tests.
pub(crate) fn check(root: &Path, sources: &[Source], found: &mut Found) -> Result<()> {
    let page = std::fs::read_to_string(root.join(PAGE)).context("cannot read docs/fidelity.md")?;
    let mut tests = functions(sources);
    for entry in std::fs::read_dir(root.join(PROBES)).context("cannot list the probes")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        tests.extend(name.strip_suffix(".py").map(|name| format!("probe {name}")));
    }
    found.faults.extend(faults(&page, &tests));
    Ok(())
}

/// The names of all functions in tests.
fn functions(sources: &[Source]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for source in sources.iter().filter(|source| source.language != Language::Other) {
        for line in source.lines().filter(|line| line.tested) {
            let code = line.code.trim_start();
            let rest = code.strip_prefix("fn ").or_else(|| code.strip_prefix("def "));
            let name = rest.and_then(|rest| rest.split_once('(')).map(|(name, _)| name);
            names.extend(name.map(str::to_owned));
        }
    }
    names
}

fn faults(page: &str, tests: &BTreeSet<String>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut rows, mut shown) = (0, 0);
    for (index, line) in page.lines().enumerate() {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, kind, _, evidence] = cells.as_slice() else { continue };
        if !line.starts_with("| ") || *kind == "how" {
            continue;
        }
        rows += 1;
        *kinds.entry(kind).or_default() += 1;
        let named: Vec<&str> = evidence.split('`').skip(1).step_by(2).collect();
        shown += usize::from(!named.is_empty());
        let mut fault = |text: String| faults.push(format!("{PAGE}:{}: {text}", index + 1));
        if !KINDS.contains(kind) {
            fault(format!("`{kind}` is none of {}", KINDS.join(", ")));
        }
        if named.is_empty() {
            fault("no test shows this row".to_owned());
        }
        for name in named.into_iter().filter(|name| !tests.contains(*name)) {
            fault(format!("there is no test `{name}`"));
        }
    }
    let counts: Vec<String> =
        KINDS.iter().map(|kind| format!("{} {kind}", kinds.get(kind).unwrap_or(&0))).collect();
    let line = format!("{rows} rows, {shown} with a test: {}.", counts.join(", "));
    if !page.lines().any(|have| have == line) {
        faults.push(format!("{PAGE}: the line of counts is not `{line}`"));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &str, counts: &str, expected: &[&str]) {
        let tests = ["probe argv".to_owned(), "a_test".to_owned()].into_iter().collect();
        let page =
            format!("{counts}\n\n| thing | how | note | shown by |\n|---|---|---|---|\n{rows}");
        assert_eq!(faults(&page, &tests), expected);
    }

    #[test]
    fn a_row_names_tests_that_exist() {
        let counts = "1 rows, 1 with a test: 1 reproduced, 0 keyed, 0 compared, 0 cold, 0 differs.";
        check("| argv | reproduced | x | `probe argv`, `a_test` |\n", counts, &[]);
        check(
            "| argv | reproduced | x | `probe gone` |\n",
            counts,
            &["docs/fidelity.md:5: there is no test `probe gone`"],
        );
    }

    #[test]
    fn a_row_has_a_kind_and_a_test() {
        let counts = "1 rows, 0 with a test: 0 reproduced, 1 keyed, 0 compared, 0 cold, 0 differs.";
        let fault = "docs/fidelity.md:5: no test shows this row";
        check("| a | keyed | x | |\n", counts, &[fault]);
        let counts = "1 rows, 0 with a test: 0 reproduced, 0 keyed, 0 compared, 0 cold, 1 differs.";
        check("| a | differs | x | |\n", counts, &[fault]);
    }

    #[test]
    fn the_counts_are_those_of_the_rows() {
        let line = "1 rows, 1 with a test: 0 reproduced, 0 keyed, 0 compared, 1 cold, 0 differs.";
        let fault = format!("docs/fidelity.md: the line of counts is not `{line}`");
        check("| a | cold | x | `a_test` |\n", "many rows", &[&fault]);
    }
}
