//! What was seen cold against what was seen warm. Pure.
//!
//! A program may do something else each time: print the time, write a random name. What differs
//! between two cold runs is no difference of hob's, so it is left out of the comparison, as finely
//! as it can be told: a line of text, or a name in a table. The last run is always a cold one, so
//! that what changes with time has changed for the cold runs too.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// What became of one comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Verdict {
    /// Every warm run was as every cold run.
    #[serde(rename = "same")]
    Same,
    /// The cold runs differ among themselves; the rest, if any, is the same.
    #[serde(rename = "varies by itself")]
    Varies,
    /// No run was warm.
    #[serde(rename = "never warm")]
    NeverWarm,
    /// What each cold run has anew is the same in all warm ones; only of worlds.
    #[serde(rename = "frozen")]
    Frozen,
    /// A warm run was otherwise than all cold runs.
    #[serde(rename = "differs")]
    Differs,
}

impl Verdict {
    /// The word for it, as in the JSON.
    #[must_use]
    pub(super) fn word(self) -> &'static str {
        match self {
            Verdict::Same => "same",
            Verdict::Varies => "varies by itself",
            Verdict::NeverWarm => "never warm",
            Verdict::Frozen => "frozen",
            Verdict::Differs => "differs",
        }
    }

    /// Whether a warm run was not as it should have been.
    pub(super) fn is_fault(self) -> bool {
        matches!(self, Verdict::Frozen | Verdict::Differs)
    }
}

/// The comparison of one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Aspect {
    /// What was compared.
    pub(super) name: String,
    /// What became of it.
    pub(super) verdict: Verdict,
    /// The first difference, as a short unified diff: `-` cold, `+` warm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) diff: Vec<String>,
    /// What is to be known beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

impl Aspect {
    pub(super) fn new(name: &str, verdict: Verdict, diff: Vec<String>) -> Aspect {
        Aspect { name: name.to_owned(), verdict, diff, note: None }
    }
}

/// Lines of a diff that are shown, and how long one is.
pub(super) const DIFF_LINES_MAX: usize = 12;
const DIFF_COLUMNS_MAX: usize = 200;
/// Lines that are the same around the first difference.
const CONTEXT: usize = 2;

/// Compares texts line by line.
pub(super) fn texts(name: &str, cold: &[Vec<u8>], warm: &[Vec<u8>]) -> Aspect {
    let cold: Vec<Vec<&[u8]>> = cold.iter().map(|text| lines(text)).collect();
    let Some((first, others)) = cold.split_first() else {
        return Aspect::new(name, Verdict::Same, Vec::new());
    };
    if others.iter().any(|other| other.len() != first.len()) {
        // Nothing tells which line of one is which line of the other.
        return Aspect::new(name, Verdict::Varies, Vec::new());
    }
    let varies: Vec<bool> =
        (0..first.len()).map(|at| others.iter().any(|other| other[at] != first[at])).collect();
    for warm in warm {
        let warm = lines(warm);
        let common = first.len().min(warm.len());
        let wrong = (0..common).find(|&at| !varies[at] && warm[at] != first[at]);
        let wrong = wrong.or((first.len() != warm.len()).then_some(common));
        if let Some(at) = wrong {
            return Aspect::new(name, Verdict::Differs, diff_at(first, &warm, at));
        }
    }
    let verdict = if varies.contains(&true) { Verdict::Varies } else { Verdict::Same };
    Aspect::new(name, verdict, Vec::new())
}

/// The lines, each with its line end: a missing one is a difference.
pub(super) fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

fn diff_at(cold: &[&[u8]], warm: &[&[u8]], at: usize) -> Vec<String> {
    let from = at.saturating_sub(CONTEXT);
    // Both end in the same lines often: those are not part of the difference.
    let tail = cold[at..].iter().rev().zip(warm[at..].iter().rev());
    let tail = tail.take_while(|(cold, warm)| cold == warm).count();
    let mut diff = vec![format!("@@ line {} @@", at + 1)];
    diff.extend(cold[from..at].iter().map(|line| shown(' ', line)));
    let each = (DIFF_LINES_MAX - CONTEXT - 1) / 2;
    for (sign, lines) in [('-', &cold[at..cold.len() - tail]), ('+', &warm[at..warm.len() - tail])]
    {
        diff.extend(lines.iter().take(each).map(|line| shown(sign, line)));
    }
    diff
}

pub(super) fn shown(sign: char, line: &[u8]) -> String {
    let ended = line.strip_suffix(b"\n");
    let mut text: String =
        String::from_utf8_lossy(ended.unwrap_or(line)).chars().take(DIFF_COLUMNS_MAX).collect();
    if ended.is_none() {
        text += " (no line end)";
    }
    format!("{sign}{text}")
}

/// A table that one run saw: names and what they stand for.
pub(super) type Table = BTreeMap<String, String>;

/// Compares tables name by name. Where the cold runs have names of their own (a file with a random
/// name), what these stand for is compared without the names.
pub(super) fn tables(name: &str, cold: &[Table], warm: &[Table]) -> Aspect {
    let Some((first, others)) = cold.split_first() else {
        return Aspect::new(name, Verdict::Same, Vec::new());
    };
    let common: BTreeSet<&String> =
        first.keys().filter(|key| others.iter().all(|other| other.contains_key(*key))).collect();
    let varies = |key: &str| others.iter().any(|other| other.get(key) != first.get(key));
    let loose: Vec<Vec<(&String, &String)>> =
        cold.iter().map(|table| beyond(table, &common)).collect();
    let first_values = values(&loose[0]);
    let is_named_anew = loose.iter().any(|loose| !loose.is_empty());
    let is_unlike = loose.iter().any(|loose| values(loose) != first_values);
    for warm in warm {
        let mut diff = Vec::new();
        for key in &common {
            let (was, is) = (first.get(*key), warm.get(*key));
            if was != is && !varies(key) {
                diff.extend(was.map(|value| entry('-', key, value)));
                diff.extend(is.map(|value| entry('+', key, value)));
            }
        }
        let more = beyond(warm, &common);
        let is_same = if is_named_anew { values(&more) == first_values } else { more.is_empty() };
        if !is_unlike && !is_same {
            diff.extend(loose[0].iter().map(|(key, value)| entry('-', key, value)));
            diff.extend(more.iter().map(|(key, value)| entry('+', key, value)));
        }
        if !diff.is_empty() {
            diff.truncate(DIFF_LINES_MAX);
            return Aspect::new(name, Verdict::Differs, diff);
        }
    }
    let anything = is_named_anew || common.iter().any(|key| varies(key));
    Aspect::new(name, if anything { Verdict::Varies } else { Verdict::Same }, Vec::new())
}

/// The entries whose names are not among these.
fn beyond<'a>(table: &'a Table, names: &BTreeSet<&String>) -> Vec<(&'a String, &'a String)> {
    table.iter().filter(|(name, _)| !names.contains(name)).collect()
}

/// What entries stand for, without their names.
fn values<'a>(entries: &[(&'a String, &'a String)]) -> Vec<&'a String> {
    let mut values: Vec<_> = entries.iter().map(|(_, value)| *value).collect();
    values.sort_unstable();
    values
}

fn entry(sign: char, key: &str, value: &str) -> String {
    shown(sign, format!("{key} {value}\n").as_bytes())
}

/// The verdict over all: the worst one.
pub(super) fn overall(aspects: &[Aspect]) -> Verdict {
    aspects.iter().map(|aspect| aspect.verdict).max().unwrap_or(Verdict::Same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cold: &[&str], warm: &[&str], verdict: Verdict, diff: &[&str]) {
        let bytes = |texts: &[&str]| -> Vec<Vec<u8>> {
            texts.iter().map(|text| text.as_bytes().to_vec()).collect()
        };
        let aspect = texts("stdout", &bytes(cold), &bytes(warm));
        assert_eq!(aspect.verdict, verdict, "{cold:?} {warm:?}");
        assert_eq!(aspect.diff, diff, "{cold:?} {warm:?}");
    }

    #[test]
    fn equal_texts_are_the_same_and_one_byte_differs() {
        check(&["a\nb\n", "a\nb\n"], &["a\nb\n"], Verdict::Same, &[]);
        check(&["", ""], &[""], Verdict::Same, &[]);
        check(
            &["a\nb\nc\n"; 2],
            &["a\nb\nc\n", "a\nX\nc\n"],
            Verdict::Differs,
            &["@@ line 2 @@", " a", "-b", "+X"],
        );
        check(&["a\n"; 2], &["a"], Verdict::Differs, &["@@ line 1 @@", "-a", "+a (no line end)"]);
        check(&["a\n"; 2], &["a\nb\n"], Verdict::Differs, &["@@ line 2 @@", " a", "+b"]);
        check(&["a\nb\n"; 2], &["a\n"], Verdict::Differs, &["@@ line 2 @@", " a", "-b"]);
    }

    #[test]
    fn a_line_that_varies_cold_is_left_out_and_the_others_are_not() {
        let cold = ["pid 1\nok\n", "pid 2\nok\n"];
        check(&cold, &["pid 3\nok\n"], Verdict::Varies, &[]);
        check(
            &cold,
            &["pid 3\nbad\n"],
            Verdict::Differs,
            &["@@ line 2 @@", " pid 1", "-ok", "+bad"],
        );
        check(
            &cold,
            &["pid 3\nok\nmore\n"],
            Verdict::Differs,
            &["@@ line 3 @@", " pid 1", " ok", "+more"],
        );
        check(&["a\n", "a\nb\n"], &["z\n"], Verdict::Varies, &[]);
    }

    #[test]
    fn a_name_that_varies_cold_is_left_out_and_the_others_are_not() {
        let table = |pairs: &[(&str, &str)]| -> Table {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let (one, two) = (table(&[("a", "1"), ("t", "1")]), table(&[("a", "1"), ("t", "2")]));
        let cold = [one.clone(), two.clone()];
        let compared = |warm: Table| tables("files", &cold, &[one.clone(), warm]);
        assert_eq!(compared(two.clone()).verdict, Verdict::Varies);
        assert_eq!(
            tables("files", &[one.clone(), one.clone()], std::slice::from_ref(&one)).verdict,
            Verdict::Same
        );
        let gone = compared(table(&[("t", "9")]));
        assert_eq!((gone.verdict, gone.diff), (Verdict::Differs, vec!["-a 1".to_owned()]));
        let more = compared(table(&[("a", "2"), ("t", "9"), ("x", "3")]));
        assert_eq!(more.diff, ["-a 1", "+a 2", "+x 3"]);
    }

    #[test]
    fn a_file_with_another_name_each_time_is_compared_by_what_it_is() {
        let table = |name: &str, value: &str| -> Table {
            [("log".to_owned(), "same".to_owned()), (name.to_owned(), value.to_owned())].into()
        };
        let cold = [table("tmp1", "file 3 bytes"), table("tmp2", "file 3 bytes")];
        let compared = |warm: &Table| tables("files", &cold, std::slice::from_ref(warm));
        assert_eq!(compared(&table("tmp3", "file 3 bytes")).verdict, Verdict::Varies);
        let larger = compared(&table("tmp3", "file 4 bytes"));
        assert_eq!((larger.verdict, larger.diff.len()), (Verdict::Differs, 2));
        let none = [("log".to_owned(), "same".to_owned())].into();
        assert_eq!(compared(&none).verdict, Verdict::Differs);
        // Unless the cold ones are unlike each other too.
        let cold = [table("tmp1", "file 3 bytes"), table("tmp2", "file 4 bytes")];
        let warm = [table("tmp3", "file 5 bytes")];
        assert_eq!(tables("files", &cold, &warm).verdict, Verdict::Varies);
    }

    #[test]
    fn the_worst_verdict_is_the_whole_ones() {
        let aspect = |verdict| Aspect::new("x", verdict, Vec::new());
        let of = |list: &[Verdict]| overall(&list.iter().copied().map(aspect).collect::<Vec<_>>());
        assert_eq!(of(&[Verdict::Same, Verdict::Same]), Verdict::Same);
        assert_eq!(of(&[Verdict::Varies, Verdict::Same]), Verdict::Varies);
        assert_eq!(of(&[Verdict::Varies, Verdict::Differs]), Verdict::Differs);
    }
}
