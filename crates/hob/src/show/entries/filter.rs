//! Which records a list has: by program, by how they ran, by how long they took, by when and where.

use hob_core::receipt::naming::base;
use jiff::Timestamp;

use super::{Entry, How};
use crate::show::clock::moment;

/// What is asked of a record. What is not asked leaves it in.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// The name, the title, the target, or its last component.
    pub program: Option<String>,
    /// It did not run warm.
    pub cold: bool,
    /// It did not end well.
    pub failed: bool,
    /// It took at least so many microseconds.
    pub slower_us: Option<u64>,
    /// It came at this moment or later.
    pub since: Option<Timestamp>,
    /// It was called from this directory, or from one below it.
    pub here: Option<String>,
    /// What it was made for.
    pub purpose: Made,
}

/// What calls are made for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Made {
    /// To be used.
    #[default]
    ToUse,
    /// By this verb of hob's, to be compared.
    By(String),
    /// Either.
    Any,
}

impl Made {
    /// The words of `--purpose`.
    pub const WORDS: [&str; 4] = ["verify", "ab", "check", "all"];

    /// By its word.
    #[must_use]
    pub fn of(word: &str) -> Made {
        if word == "all" { Made::Any } else { Made::By(word.to_owned()) }
    }

    /// Whether a record is of such a call. A session of hob's own or a message is used.
    #[must_use]
    pub fn takes(&self, entry: &Entry) -> bool {
        let purpose = match entry {
            Entry::Receipt(receipt) => receipt.purpose.as_deref(),
            Entry::Fallback(_) => None,
        };
        match self {
            Made::ToUse => purpose.is_none(),
            Made::By(verb) => purpose == Some(verb),
            Made::Any => true,
        }
    }
}

impl Filter {
    /// Whether nothing is asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Filter { program, cold, failed, slower_us, since, here, purpose } = self;
        !(*cold || *failed)
            && *purpose == Made::ToUse
            && program.is_none()
            && slower_us.is_none()
            && since.is_none()
            && here.is_none()
    }

    /// Whether the record has all that is asked.
    #[must_use]
    pub fn takes(&self, entry: &Entry) -> bool {
        (!self.cold || entry.how() == How::Cold)
            && (!self.failed || has_failed(entry))
            && self.program.as_ref().is_none_or(|program| is_of(entry, program))
            && self.slower_us.is_none_or(|us| total_us(entry).is_some_and(|total| total >= us))
            && self.since.is_none_or(|since| moment(entry.at()).is_some_and(|at| at >= since))
            && self.here.as_ref().is_none_or(|here| is_within(entry, here))
            && self.purpose.takes(entry)
    }
}

/// Nothing is known of what became of a call that no daemon saw.
fn has_failed(entry: &Entry) -> bool {
    let Entry::Receipt(receipt) = entry else { return false };
    !receipt.outcome.went_well()
}

fn is_of(entry: &Entry, program: &str) -> bool {
    let naming = entry.naming();
    let program = program.strip_prefix("./").unwrap_or(program);
    naming.name == program
        || base(naming.name) == program
        || naming.title() == program
        || !naming.target.is_empty()
            && (naming.target == program
                || base(naming.target) == program
                || naming.target.strip_suffix(program).is_some_and(|rest| rest.ends_with('/')))
}

fn total_us(entry: &Entry) -> Option<u64> {
    match entry {
        Entry::Receipt(receipt) => Some(receipt.total_us),
        Entry::Fallback(_) => None,
    }
}

/// A run of hooks is where its hooks lie.
fn is_within(entry: &Entry, here: &str) -> bool {
    let Entry::Receipt(receipt) = entry else { return false };
    let place = match (&receipt.directory, &receipt.hooks) {
        (Some(directory), _) => directory,
        (None, Some(_)) => &receipt.program.target,
        (None, None) => return false,
    };
    let rest = place.strip_prefix(here.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::samples;

    fn receipt(change: impl FnOnce(&mut hob_core::receipt::Receipt)) -> Entry {
        let mut receipt = samples::warm();
        change(&mut receipt);
        Entry::Receipt(Box::new(receipt))
    }

    #[test]
    fn nothing_asked_takes_everything() {
        assert!(Filter::default().is_empty());
        assert!(samples::all().iter().all(|entry| Filter::default().takes(entry)));
    }

    #[test]
    fn a_program_is_found_by_every_name_that_it_has() {
        let entry = receipt(|_| {});
        let takes = |program: &str| {
            let filter = Filter { program: Some(program.to_owned()), ..Filter::default() };
            !filter.is_empty() && filter.takes(&entry)
        };
        for program in ["black", "/srv/venv/bin/black", "bin/black", "./black"] {
            assert!(takes(program), "{program}");
        }
        for program in ["lack", "python3.11", "n/black", ""] {
            assert!(!takes(program), "{program}");
        }
        let module = receipt(|receipt| {
            receipt.program.name = "-m".to_owned();
            receipt.program.target = "json.tool".to_owned();
        });
        for program in ["-m json.tool", "json.tool"] {
            let filter = Filter { program: Some(program.to_owned()), ..Filter::default() };
            assert!(filter.takes(&module), "{program}");
        }
    }

    #[test]
    fn each_condition_leaves_out_what_it_is_not_asked_for() {
        let cold = Filter { cold: true, ..Filter::default() };
        let failed = Filter { failed: true, ..Filter::default() };
        let slower = Filter { slower_us: Some(1_374), ..Filter::default() };
        let since = "2026-11-21T21:38:04.120337Z".parse().unwrap();
        let since = Filter { since: Some(since), ..Filter::default() };
        let here = |at: &str| Filter { here: Some(at.to_owned()), ..Filter::default() };
        let warm = receipt(|_| {});
        assert!(!cold.takes(&warm) && cold.takes(&samples::fallback()));
        assert!(!failed.takes(&warm) && !failed.takes(&samples::fallback()));
        assert!(failed.takes(&receipt(|receipt| receipt.outcome.code = Some(1))));
        assert!(failed.takes(&receipt(|receipt| receipt.outcome.kind = "lost".to_owned())));
        for kind in ["answered", "accepted"] {
            assert!(!failed.takes(&receipt(|receipt| receipt.outcome.kind = kind.to_owned())));
        }
        assert!(slower.takes(&warm) && !slower.takes(&samples::fallback()));
        assert!(!slower.takes(&receipt(|receipt| receipt.total_us = 1_373)));
        assert!(since.takes(&warm) && !since.takes(&samples::fallback()));
        assert!(here("/srv/app").takes(&warm) && here("/srv/").takes(&warm));
        assert!(here("/").takes(&warm));
        assert!(!here("/srv/ap").takes(&warm) && !here("/srv/app/below").takes(&warm));
    }
}
