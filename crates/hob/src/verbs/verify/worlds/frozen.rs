//! What is other in each cold run and the same in all warm ones: the time of an import, a random
//! number that copies share, the order of a set. Pure.
//!
//! ```text
//!   cold 1 ─▶ warm 1 ─▶ cold 2 ─▶ warm 2 ─▶ (a second) ─▶ warm 3 ─▶ cold 3
//! ```
//! A clock that goes on by seconds or minutes is not taken for one that stands: cold runs lie
//! between warm ones, and none of them may have the warm runs' value. Addresses are left out: where
//! in memory things are is chosen once for all copies.

use std::collections::BTreeSet;

use super::super::compare::{Aspect, DIFF_LINES_MAX, Table, Verdict, lines, shown};

/// Digits of what is taken for an address.
const ADDRESS_DIGITS_MIN: usize = 6;

/// The value that all warm runs share, that no cold one has, and that the cold ones do not share
/// either.
fn is_frozen<T: PartialEq>(cold: &[T], warm: &[T]) -> bool {
    let Some((value, others)) = warm.split_first() else { return false };
    let repeats = !others.is_empty() && others.iter().all(|other| other == value);
    repeats && cold.iter().any(|each| *each != cold[0]) && !cold.contains(value)
}

/// Compares texts; `None` if nothing in them is frozen.
pub(super) fn texts(name: &str, cold: &[Vec<u8>], warm: &[Vec<u8>]) -> Option<Aspect> {
    let of = |runs: &[Vec<u8>]| -> Vec<Vec<Vec<u8>>> {
        runs.iter().map(|text| lines(text).into_iter().map(without_addresses).collect()).collect()
    };
    let (cold, warm) = (of(cold), of(warm));
    let count = cold.first().map_or(0, Vec::len);
    let all = || cold.iter().chain(&warm);
    if all().any(|lines| lines.len() != count) {
        // Nothing tells which line of one is which line of the other.
        let diff = || vec!["@@ the whole @@".to_owned()];
        return is_frozen(&cold, &warm).then(|| Aspect::new(name, Verdict::Frozen, diff()));
    }
    let at = (0..count).find(|&at| {
        let line = |runs: &[Vec<Vec<u8>>]| runs.iter().map(|run| run[at].clone()).collect();
        let (cold, warm): (Vec<_>, Vec<_>) = (line(&cold), line(&warm));
        is_frozen(&cold, &warm)
    })?;
    let mut diff = vec![format!("@@ line {} @@", at + 1)];
    diff.extend(cold.iter().map(|run| shown('-', &run[at])));
    diff.push(shown('+', &warm[0][at]));
    Some(Aspect::new(name, Verdict::Frozen, diff))
}

/// Compares tables, by name; `None` if nothing in them is frozen.
pub(super) fn tables(name: &str, cold: &[Table], warm: &[Table]) -> Option<Aspect> {
    let of = |runs: &[Table], key: &String| runs.iter().map(|run| run.get(key).cloned()).collect();
    let keys: BTreeSet<&String> = warm.iter().flat_map(Table::keys).collect();
    let mut diff = Vec::new();
    for key in keys {
        let (cold, warm): (Vec<Option<String>>, Vec<Option<String>>) =
            (of(cold, key), of(warm, key));
        let everywhere = cold.iter().chain(&warm).all(Option::is_some);
        if everywhere && is_frozen(&cold, &warm) {
            let value = |value: &Option<String>| value.clone().unwrap_or_default();
            let line = |sign, is: &Option<String>| {
                shown(sign, format!("{key} {}\n", value(is)).as_bytes())
            };
            diff.extend(cold.iter().map(|each| line('-', each)));
            diff.push(line('+', &warm[0]));
        }
    }
    // Names that each cold run makes up, where warm ones make up the same ones.
    let names = |runs: &[Table]| -> Vec<BTreeSet<String>> {
        runs.iter().map(|run| run.keys().cloned().collect()).collect()
    };
    let (cold, warm) = (names(cold), names(warm));
    if is_frozen(&cold, &warm) {
        let known: BTreeSet<&String> = cold.iter().flatten().collect();
        diff.extend(
            warm[0].iter().filter(|name| !known.contains(name)).map(|name| format!("+{name}")),
        );
    }
    diff.truncate(DIFF_LINES_MAX);
    (!diff.is_empty()).then(|| Aspect::new(name, Verdict::Frozen, diff))
}

/// The line with a mark where an address (`0x7f...`) stands.
fn without_addresses(line: &[u8]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some(&byte) = rest.first() {
        let digits = rest.strip_prefix(b"0x").map_or(0, |digits| {
            digits.iter().take_while(|digit| digit.is_ascii_hexdigit()).count()
        });
        if digits >= ADDRESS_DIGITS_MIN {
            shown.extend_from_slice(b"0x..");
            rest = &rest[2 + digits..];
        } else {
            shown.push(byte);
            rest = &rest[1..];
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cold: &[&str], warm: &[&str], diff: Option<&[&str]>) {
        let bytes = |texts: &[&str]| -> Vec<Vec<u8>> {
            texts.iter().map(|text| text.as_bytes().to_vec()).collect()
        };
        let found = texts("stdout", &bytes(cold), &bytes(warm));
        assert_eq!(found.as_ref().map(|aspect| aspect.verdict), diff.map(|_| Verdict::Frozen));
        let lines: Option<Vec<&str>> =
            found.as_ref().map(|aspect| aspect.diff.iter().map(String::as_str).collect());
        assert_eq!(lines.as_deref(), diff, "{cold:?} {warm:?}");
    }

    #[test]
    fn a_value_that_stands_still_warm_alone_is_frozen() {
        let diff = ["@@ line 2 @@", "-1", "-2", "+0"];
        check(&["x\n1\n", "x\n2\n"], &["x\n0\n", "x\n0\n"], Some(&diff));
        // It goes on, or stands still cold too, or is a cold run's as well.
        check(&["1\n", "2\n"], &["3\n", "4\n"], None);
        check(&["1\n", "1\n"], &["0\n", "0\n"], None);
        check(&["1\n", "2\n"], &["2\n", "2\n"], None);
        // One run repeats nothing.
        check(&["1\n", "2\n"], &["0\n"], None);
        let whole = ["@@ the whole @@"];
        check(&["1\n", "1\n2\n"], &["0\n", "0\n"], Some(&whole));
    }

    #[test]
    fn addresses_are_the_copies_own_affair() {
        check(
            &["<x at 0x7f0000001>\n", "<x at 0x7f0000002>\n"],
            &["<x at 0x7f0000003>\n"; 2],
            None,
        );
        let diff = ["@@ line 1 @@", "-0x1", "-0x2", "+0x3"];
        check(&["0x1\n", "0x2\n"], &["0x3\n", "0x3\n"], Some(&diff));
    }

    #[test]
    fn a_file_whose_name_or_text_stands_still_is_frozen() {
        let table = |name: &str, text: &str| Table::from([(name.to_owned(), text.to_owned())]);
        let frozen = |cold: [Table; 2], warm: [Table; 2]| {
            tables("files", &cold, &warm).map_or(Vec::new(), |aspect| aspect.diff)
        };
        let same = table("log", "0");
        let found = frozen([table("log", "1"), table("log", "2")], [same.clone(), same]);
        assert_eq!(found, ["-log 1", "-log 2", "+log 0"]);
        let named = |name: &str| table(name, "text");
        let found = frozen([named("a"), named("b")], [named("c"), named("c")]);
        assert_eq!(found, ["+c"]);
        assert!(frozen([named("a"), named("b")], [named("c"), named("d")]).is_empty());
    }
}
