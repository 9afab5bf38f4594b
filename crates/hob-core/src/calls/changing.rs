//! Variables that callers set anew for each call, where a program reads them while it is imported.
//!
//! ```text
//!            other values than before, often enough
//!  Selects ─────────────────────────────────────────▶ Volatile: imported by who reads it
//!     ▲                                                 │  │
//!     └── values that came before, many times in a row ─┘  │ it is read all the same
//!                                                          ▼
//!                                                       Needed: cold while its values are new
//! ```
//!
//! Whatever is read selects, so that such a variable would make a pool for each call, and each
//! would be used once. The daemon tells the values of calls whose key is new; nothing is kept of
//! them but digests. How often another value must have come depends on the name, and grows each
//! time that it was wrong.

use std::collections::{BTreeMap, VecDeque};

use hob_wire::strings::Strings;

use crate::key::{Key, KeyBuilder, Part};

/// Variables of one program of which values are remembered. Others select as they always do.
const VARIABLES_MAX: usize = 512;
/// Values of one variable that are remembered, the newest.
const VALUES_MAX: usize = 4;
/// So many calls in a row with a value that came before, and the variable selects again.
const SETTLED_CALLS: u32 = 16;
/// So many other values make a variable one that is set anew.
const CHANGES: u32 = 2;
/// By so many more each time that it has settled.
const CHANGES_MORE: u32 = 2;

/// What by its meaning is of one call: the moment of a commit, the number of a trace or of a start.
const OF_ONE_CALL: [&str; 7] = [
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_DATE",
    "INVOCATION_ID",
    "TRACEPARENT",
    "TRACESTATE",
    "SYSTEMD_EXEC_PID",
    "BAZEL_TEST_INVOCATION_ID",
];
/// Families of what callers often set anew: one other value is enough.
const OFTEN: [&str; 4] = ["GIT_", "SSH_", "JOURNAL_", "PRE_COMMIT_"];

/// What is known of the variables of one program.
#[derive(Debug, Clone, Default)]
pub struct Changing {
    known: BTreeMap<Vec<u8>, Variable>,
}

#[derive(Debug, Clone)]
struct Variable {
    /// Digests of its values, the newest last.
    values: VecDeque<Key>,
    /// Other values than before, since it selects.
    changes: u32,
    /// How often it was found to be set anew.
    found: u32,
    stands: Stands,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    /// It is part of the key.
    Selects,
    /// Modules that read it are imported in the call. So many calls in a row had a value that came
    /// before.
    Volatile { settled: u32 },
    /// It is part of the key and changes, and nobody can be left out for it.
    Needed { again: bool },
}

/// What a call's variables brought about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    AsBefore,
    /// What is loaded ahead has to be loaded anew: a variable is left to calls, or is not any more.
    LoadsAnew,
}

impl Changing {
    /// Whether this variable is left to calls.
    #[must_use]
    pub fn is_volatile(&self, name: &[u8]) -> bool {
        self.known.get(name).is_some_and(|known| matches!(known.stands, Stands::Volatile { .. }))
    }

    /// The variables that are left to calls, in order.
    pub fn volatile(&self) -> impl Iterator<Item = &[u8]> {
        let is_volatile =
            |(_, known): &(&Vec<u8>, &Variable)| matches!(known.stands, Stands::Volatile { .. });
        self.known.iter().filter(is_volatile).map(|(name, _)| name.as_slice())
    }

    /// Whether a variable that selects had a value in the newest call that no call before had: a
    /// pool for it would be used once.
    #[must_use]
    pub fn is_of_one_call(&self) -> bool {
        self.known.values().any(|known| known.stands == Stands::Needed { again: false })
    }

    /// A call has come with a key that the program never had. `selects` says what is part of it,
    /// `fixed` what cannot be left to calls, because an interpreter or a library reads it itself.
    pub fn new_key(
        &mut self,
        env: &Strings,
        selects: impl Fn(&[u8]) -> bool,
        fixed: impl Fn(&[u8]) -> bool,
    ) -> Change {
        let mut change = Change::AsBefore;
        let given = values(env);
        let mut names: Vec<&[u8]> = given.keys().copied().filter(|name| selects(name)).collect();
        names.extend(given.keys().filter(|name| !selects(name) && at_most(name) < CHANGES));
        let gone: Vec<Vec<u8>> = self
            .known
            .keys()
            .filter(|name| !given.contains_key(name.as_slice()))
            .cloned()
            .collect();
        names.extend(gone.iter().map(Vec::as_slice));
        for name in names {
            if !self.known.contains_key(name) && self.known.len() >= VARIABLES_MAX {
                continue;
            }
            let value = digest(given.get(name).copied());
            let known = self.known.entry(name.to_vec()).or_insert_with(|| Variable::new(value));
            if known.stands != Stands::Selects {
                continue;
            }
            if known.values.back() != Some(&value) {
                known.changes = if known.values.contains(&value) { 0 } else { known.changes + 1 };
                known.remember(value);
            }
            let needed = at_most(name) + CHANGES_MORE * known.found;
            if selects(name) && given.contains_key(name) && known.changes >= needed {
                known.found += 1;
                known.changes = 0;
                known.stands = if fixed(name) {
                    Stands::Needed { again: false }
                } else {
                    change = Change::LoadsAnew;
                    Stands::Volatile { settled: 0 }
                };
            }
        }
        change
    }

    /// A call has come. Of what is left to calls its value is looked at, for whether that still is
    /// right.
    pub fn called(&mut self, env: &Strings) -> Change {
        let mut change = Change::AsBefore;
        if self.known.values().all(|known| known.stands == Stands::Selects) {
            return change;
        }
        let given = values(env);
        for (name, known) in &mut self.known {
            if known.stands == Stands::Selects {
                continue;
            }
            let value = digest(given.get(name.as_slice()).copied());
            let again = known.values.contains(&value);
            if !again {
                known.remember(value);
            }
            match &mut known.stands {
                Stands::Selects => {}
                Stands::Needed { again: stands } => *stands = again,
                Stands::Volatile { settled } if again => {
                    *settled += 1;
                    if *settled >= SETTLED_CALLS << known.found.min(8) {
                        known.stands = Stands::Selects;
                        change = Change::LoadsAnew;
                    }
                }
                Stands::Volatile { settled } => *settled = 0,
            }
        }
        change
    }

    /// Something read a variable that was to be left to calls, and cannot be left out itself.
    pub fn is_needed(&mut self, name: &[u8]) {
        if let Some(known) = self.known.get_mut(name)
            && matches!(known.stands, Stands::Volatile { .. })
        {
            known.stands = Stands::Needed { again: false };
        }
    }
}

impl Variable {
    fn new(value: Key) -> Variable {
        Variable { values: [value].into(), changes: 0, found: 0, stands: Stands::Selects }
    }

    fn remember(&mut self, value: Key) {
        self.values.push_back(value);
        if self.values.len() > VALUES_MAX {
            self.values.pop_front();
        }
    }
}

/// How many other values make this variable one that is set anew, the first time.
fn at_most(name: &[u8]) -> u32 {
    if OF_ONE_CALL.iter().any(|each| each.as_bytes() == name) {
        return 0;
    }
    let is_often = OFTEN.iter().any(|family| name.starts_with(family.as_bytes()));
    if is_often { 1 } else { CHANGES }
}

/// The variables of an environment; of what is there twice the first counts.
fn values(env: &Strings) -> BTreeMap<&[u8], &[u8]> {
    let mut values = BTreeMap::new();
    for entry in env.iter() {
        let end = entry.iter().position(|byte| *byte == b'=').unwrap_or(entry.len());
        values.entry(&entry[..end]).or_insert(entry);
    }
    values
}

fn digest(entry: Option<&[u8]>) -> Key {
    let mut builder = KeyBuilder::new();
    match entry {
        Some(entry) => builder.absorb(Part::Set, entry),
        None => builder.absorb(Part::Unset, b""),
    };
    builder.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn env(entries: &[&str]) -> Strings {
        entries.iter().collect()
    }

    fn new_key(changing: &mut Changing, entries: &[&str]) -> Change {
        changing.new_key(&env(entries), |_| true, |name| name.starts_with(b"LC_"))
    }

    fn volatile_of(changing: &Changing) -> Vec<&str> {
        changing.volatile().map(|name| std::str::from_utf8(name).unwrap()).collect()
    }

    #[test]
    fn a_variable_of_one_call_is_left_to_calls_at_once() {
        let mut changing = Changing::default();
        assert_eq!(new_key(&mut changing, &["GIT_AUTHOR_DATE=@1", "A=1"]), Change::LoadsAnew);
        assert_eq!(volatile_of(&changing), ["GIT_AUTHOR_DATE"]);
        assert!(changing.is_volatile(b"GIT_AUTHOR_DATE") && !changing.is_volatile(b"A"));
        assert!(!changing.is_of_one_call());
    }

    #[test]
    fn other_variables_are_left_to_calls_when_they_have_changed_often_enough() {
        let mut changing = Changing::default();
        new_key(&mut changing, &["GIT_INDEX_FILE=a", "A=1", "B=1"]);
        assert_eq!(new_key(&mut changing, &["GIT_INDEX_FILE=b", "A=2", "B=1"]), Change::LoadsAnew);
        assert_eq!(volatile_of(&changing), ["GIT_INDEX_FILE"]);
        assert_eq!(new_key(&mut changing, &["GIT_INDEX_FILE=c", "A=3", "B=1"]), Change::LoadsAnew);
        assert_eq!(volatile_of(&changing), ["A", "GIT_INDEX_FILE"]);
    }

    #[test]
    fn values_that_come_again_are_no_change() {
        let mut changing = Changing::default();
        for value in ["A=1", "A=2", "A=1", "A=2", "A=2", "A=1"] {
            assert_eq!(new_key(&mut changing, &[value]), Change::AsBefore, "{value}");
        }
        assert_eq!(volatile_of(&changing), [""; 0]);
    }

    #[test]
    fn what_does_not_select_is_no_reason() {
        let mut changing = Changing::default();
        for value in ["GIT_AUTHOR_DATE=1", "GIT_AUTHOR_DATE=2", "GIT_AUTHOR_DATE=3"] {
            let change = changing.new_key(&env(&[value]), |_| false, |_| false);
            assert_eq!(change, Change::AsBefore);
        }
        // Its values were remembered meanwhile.
        assert_eq!(new_key(&mut changing, &["GIT_AUTHOR_DATE=3"]), Change::LoadsAnew);
    }

    #[test]
    fn a_variable_that_stays_selects_again_and_is_believed_later_the_next_time() {
        let mut changing = Changing::default();
        for value in ["A=1", "A=2", "A=3"] {
            new_key(&mut changing, &[value]);
        }
        assert_eq!(volatile_of(&changing), ["A"]);
        let settles = SETTLED_CALLS << 1;
        for _ in 1..settles {
            assert_eq!(changing.called(&env(&["A=3"])), Change::AsBefore);
        }
        assert_eq!(changing.called(&env(&["A=4"])), Change::AsBefore, "it begins anew");
        for _ in 1..settles {
            assert_eq!(changing.called(&env(&["A=4"])), Change::AsBefore);
        }
        assert_eq!(changing.called(&env(&["A=4"])), Change::LoadsAnew);
        assert_eq!(volatile_of(&changing), [""; 0]);
        for value in ["A=5", "A=6", "A=7"] {
            assert_eq!(new_key(&mut changing, &[value]), Change::AsBefore);
        }
        assert_eq!(new_key(&mut changing, &["A=8"]), Change::LoadsAnew);
    }

    #[test]
    fn what_is_needed_all_the_same_makes_no_pool_while_its_values_are_new() {
        let mut changing = Changing::default();
        new_key(&mut changing, &["TRACEPARENT=1"]);
        changing.is_needed(b"TRACEPARENT");
        changing.is_needed(b"UNKNOWN");
        assert_eq!(volatile_of(&changing), [""; 0]);
        assert!(changing.is_of_one_call());
        changing.called(&env(&["TRACEPARENT=2"]));
        assert!(changing.is_of_one_call());
        changing.called(&env(&["TRACEPARENT=2"]));
        assert!(!changing.is_of_one_call(), "it came again");
        changing.called(&env(&["TRACEPARENT=3"]));
        assert!(changing.is_of_one_call());
    }

    #[test]
    fn what_an_interpreter_reads_itself_cannot_be_left_to_calls() {
        let mut changing = Changing::default();
        for value in ["LC_X=1", "LC_X=2", "LC_X=3"] {
            assert_eq!(new_key(&mut changing, &[value]), Change::AsBefore);
        }
        assert_eq!(volatile_of(&changing), [""; 0]);
        assert!(changing.is_of_one_call());
    }

    proptest! {
        #[test]
        fn values_that_are_all_different_make_two_pools(count in 3u32..200) {
            let mut changing = Changing::default();
            let mut pools = 0;
            for value in 0..count {
                let entry = format!("A={value}");
                let _ = changing.called(&env(&[&entry]));
                if !changing.is_volatile(b"A") && new_key(&mut changing, &[&entry]) == Change::AsBefore {
                    pools += 1;
                }
            }
            prop_assert_eq!(pools, 2);
        }
    }
}
