//! Whether a program fails warm where it succeeds cold: what hob could not foresee heals itself.
//!
//! ```text
//!            a warm call ends by a fault
//!  (unknown) ───────────────────────────▶ Suspected: the next ones of its work run cold
//!      │                                      │      │
//!      │ a warm one succeeds,                 │      └─ one succeeds ─▶ the program differs:
//!      ▼ or a cold one fails                  ▼                         all its calls run cold
//!   Trusted ◀── a cold one fails, or a warm one succeeds
//! ```
//! Invariants: nothing runs that nobody asked for, and nothing twice; only calls of the same work
//! are compared; everything is bounded; a program that changed begins anew, and so does one that a
//! person asks for. A program that chose its exit status may have found something, which is mended
//! until the next call: it says nothing. It does not see how a program ended: the daemon tells.

use std::collections::VecDeque;

use crate::event::{Found, Performed};
use crate::ids::Work;
use crate::outcome::Outcome;
use hob_wire::exit::Exit;

/// Tasks of one program that are remembered, the newest.
const TASKS_MAX: usize = 32;

/// Signals that say that a program went wrong: illegal instruction, trap, abort, bus error,
/// arithmetic, segment, system call. Others come from outside, or are what was meant.
const FAULTS: [u8; 7] = [4, 5, 6, 7, 8, 11, 31];

/// How a call ended that says something of its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With 0.
    Succeeded,
    /// With an exit status that it chose.
    Failed,
    /// By an error that nobody caught, or a signal that says so.
    Fault(Exit),
}

/// Where a call's program was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ran {
    /// In the call. So it is in a copy of a layer, too.
    Cold,
    /// Ahead of it.
    Warm,
}

/// What a call's end brought about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compared {
    /// Nothing.
    AsBefore,
    /// The program fails warm where it succeeds cold.
    Differs,
}

/// Whether a worker has told that an error ended its program which nobody caught.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Uncaught {
    /// It has not.
    #[default]
    No,
    /// It has.
    Yes,
}

/// What is known of the ends of a program's calls.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ends {
    /// Which edition of the program they were calls of.
    edition: u64,
    /// How the warm calls end whose cold ones succeed.
    differs: Option<Exit>,
    tasks: VecDeque<(u64, Known)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// It succeeds warm, or fails cold too.
    Trusted,
    /// It has failed warm, like this.
    Suspected(Exit),
}

impl End {
    /// What an outcome says; nothing if somebody else brought it about.
    pub(crate) fn of(outcome: Outcome, uncaught: Uncaught) -> Option<End> {
        let exit = match outcome {
            Outcome::Exited(exit) => exit,
            Outcome::TimedOut(_)
            | Outcome::Cancelled(_)
            | Outcome::Refused(_)
            | Outcome::Lost(_) => return None,
        };
        match (exit, uncaught) {
            (Exit::Code(0), _) => Some(End::Succeeded),
            (Exit::Code(_), Uncaught::No) => Some(End::Failed),
            (Exit::Code(_), Uncaught::Yes) => Some(End::Fault(exit)),
            (Exit::Signal(signal), _) => FAULTS.contains(&signal).then_some(End::Fault(exit)),
        }
    }
}

impl Ran {
    /// How a call was performed; nothing of one that nobody performed.
    pub(crate) fn of(how: Performed) -> Option<Ran> {
        match how {
            Performed::Not => None,
            Performed::Cold(_)
            | Performed::InPlace(_)
            | Performed::Warm { found: Found::Bare | Found::Installed, .. } => Some(Ran::Cold),
            Performed::Warm {
                found:
                    Found::CopyReady | Found::StandbyReady | Found::ForkedOnDemand | Found::Queued,
                ..
            } => Some(Ran::Warm),
        }
    }
}

impl Ends {
    /// Nothing is known of this edition of a program.
    pub(crate) fn of_edition(edition: u64) -> Ends {
        Ends { edition, ..Ends::default() }
    }

    /// Takes in of which edition the program's newest call is.
    pub(crate) fn arrived(&mut self, edition: u64) {
        if self.edition != edition {
            *self = Ends::of_edition(edition);
        }
    }

    /// How the program's warm calls end whose cold ones succeed: all of them run cold then.
    pub(crate) fn differs(&self) -> Option<Exit> {
        self.differs
    }

    /// Whether the next call of this work runs cold, to be compared.
    pub(crate) fn is_compared(&self, work: Work) -> bool {
        matches!(self.known(work.task), Some(Known::Suspected(_)))
    }

    /// Takes the end of a call in.
    pub(crate) fn take(&mut self, work: Work, ran: Ran, end: End) -> Compared {
        if self.differs.is_some() || work.edition != self.edition {
            return Compared::AsBefore;
        }
        match (self.known(work.task), ran, end) {
            (None | Some(Known::Suspected(_)), Ran::Warm, End::Succeeded)
            | (None | Some(Known::Suspected(_)), Ran::Cold, End::Failed | End::Fault(_)) => {
                self.note(work.task, Known::Trusted);
            }
            (None, Ran::Warm, End::Fault(exit)) => self.note(work.task, Known::Suspected(exit)),
            (Some(Known::Suspected(exit)), Ran::Cold, End::Succeeded) => {
                (self.differs, self.tasks) = (Some(exit), VecDeque::new());
                return Compared::Differs;
            }
            (None | Some(Known::Suspected(_)), Ran::Warm, End::Failed)
            | (None, Ran::Cold, End::Succeeded)
            | (Some(Known::Suspected(_)), Ran::Warm, End::Fault(_))
            | (Some(Known::Trusted), _, _) => {}
        }
        Compared::AsBefore
    }

    /// What is loaded ahead is another from now on. What was found stays found.
    pub(crate) fn loads_anew(&mut self) {
        self.tasks.clear();
    }

    fn known(&self, task: u64) -> Option<Known> {
        self.tasks.iter().find(|(known, _)| *known == task).map(|(_, known)| *known)
    }

    fn note(&mut self, task: u64, now: Known) {
        self.tasks.retain(|(known, _)| *known != task);
        self.tasks.push_back((task, now));
        if self.tasks.len() > TASKS_MAX {
            self.tasks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: Work = Work { edition: 1, task: 1 };
    const FAULT: End = End::Fault(Exit::Code(1));
    const SEEN: Compared = Compared::AsBefore;

    /// Lets calls end one after the other; how the last was taken, and whether the next runs cold.
    fn after(ends: &[(Ran, End)]) -> (Compared, bool) {
        let mut known = Ends::of_edition(1);
        let mut last = SEEN;
        for (ran, end) in ends {
            last = known.take(WORK, *ran, *end);
        }
        assert_eq!(known.differs().is_some(), last == Compared::Differs, "{ends:?}");
        (last, known.is_compared(WORK))
    }

    #[test]
    fn a_fault_is_found_by_one_success_of_the_same_work() {
        assert_eq!(after(&[(Ran::Warm, FAULT)]), (SEEN, true));
        let both = [(Ran::Warm, FAULT), (Ran::Cold, End::Succeeded)];
        assert_eq!(after(&both), (Compared::Differs, false));
        // Calls at the same time change nothing of it.
        let more = [(Ran::Warm, FAULT), (Ran::Warm, FAULT), (Ran::Warm, End::Failed), both[1]];
        assert_eq!(after(&more), (Compared::Differs, false));
    }

    #[test]
    fn who_chose_to_fail_is_not_suspected() {
        assert_eq!(after(&[(Ran::Warm, End::Failed)]), (SEEN, false));
        assert_eq!(after(&[(Ran::Warm, End::Failed), (Ran::Cold, End::Succeeded)]), (SEEN, false));
    }

    #[test]
    fn what_fails_cold_too_or_has_succeeded_warm_is_trusted() {
        let well = (Ran::Cold, End::Succeeded);
        for trusted in [(Ran::Cold, End::Failed), (Ran::Cold, FAULT), (Ran::Warm, End::Succeeded)] {
            assert_eq!(after(&[trusted, (Ran::Warm, FAULT), well]), (SEEN, false));
            let later = [(Ran::Warm, FAULT), trusted, (Ran::Warm, FAULT), well];
            assert_eq!(after(&later), (SEEN, false));
        }
        assert_eq!(after(&[well, (Ran::Warm, FAULT)]), (SEEN, true));
    }

    #[test]
    fn what_is_found_stays_found_until_an_edit() {
        let mut known = Ends::of_edition(1);
        known.take(WORK, Ran::Warm, FAULT);
        known.loads_anew();
        assert!(!known.is_compared(WORK), "another is loaded than failed");
        known.take(WORK, Ran::Warm, FAULT);
        known.take(WORK, Ran::Cold, End::Succeeded);
        known.loads_anew();
        known.arrived(1);
        assert_eq!(known.differs(), Some(Exit::Code(1)));
        known.arrived(2);
        assert_eq!(known.differs(), None);
        // One of the old text ends only now.
        known.take(WORK, Ran::Warm, FAULT);
        assert!(!known.is_compared(WORK));
    }

    #[test]
    fn other_work_says_nothing_and_what_is_remembered_is_bounded() {
        let mut known = Ends::of_edition(1);
        let task = |task| Work { task, ..WORK };
        for number in 0..1000 {
            known.take(task(number), Ran::Warm, FAULT);
        }
        assert_eq!(known.tasks.len(), TASKS_MAX);
        assert!(known.is_compared(task(999)) && !known.is_compared(task(0)));
        assert_eq!(known.take(task(1000), Ran::Cold, End::Succeeded), SEEN);
        assert!(known.is_compared(task(999)));
    }

    #[test]
    fn only_what_a_program_did_by_itself_counts() {
        let of = |exit, uncaught| End::of(Outcome::Exited(exit), uncaught);
        assert_eq!(of(Exit::Signal(11), Uncaught::No), Some(End::Fault(Exit::Signal(11))));
        let outside = |signal| of(Exit::Signal(signal), Uncaught::Yes).is_none();
        assert!([1, 2, 9, 13, 15].into_iter().all(outside));
        assert_eq!(of(Exit::Code(0), Uncaught::Yes), Some(End::Succeeded));
        assert_eq!(of(Exit::Code(1), Uncaught::No), Some(End::Failed));
        assert_eq!(of(Exit::Code(1), Uncaught::Yes), Some(FAULT));
        assert_eq!(End::of(Outcome::Lost(crate::phase::Phase::Main), Uncaught::No), None);
    }
}
