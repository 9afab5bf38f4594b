//! What became of a hook, from how its process ended. The table is `docs/hooks.md`'s.

use serde::{Deserialize, Serialize};

/// What became of a hook, or of a set of them. In the order of their weight: of several, the
/// greatest stands for all ([`HookOutcome::worst`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookOutcome {
    /// It exited with 0.
    Ok,
    /// It exited with 32 to 63: logged, and the set goes on.
    Warning,
    /// It exited with 100: the set stops, and its output is a message for people, not a fault.
    Interrupt,
    /// It exited with any other code, or a signal ended it.
    Error,
    /// It ran out of time and was ended.
    Timeout,
    /// It could not be started, or nothing is known of its end.
    SystemError,
    /// It was ended, or not begun, because whoever asked for it wanted so.
    Cancelled,
}

impl HookOutcome {
    /// Every outcome, for tables and tests.
    pub const ALL: [HookOutcome; 7] = [
        HookOutcome::Ok,
        HookOutcome::Warning,
        HookOutcome::Interrupt,
        HookOutcome::Error,
        HookOutcome::Timeout,
        HookOutcome::SystemError,
        HookOutcome::Cancelled,
    ];

    /// What this end of a hook means.
    #[must_use]
    pub fn of(end: &End) -> HookOutcome {
        match end {
            End::Exited(0) => HookOutcome::Ok,
            End::Exited(32..=63) => HookOutcome::Warning,
            End::Exited(100) => HookOutcome::Interrupt,
            End::Exited(_) | End::Signalled(_) => HookOutcome::Error,
            End::TimedOut => HookOutcome::Timeout,
            End::NotStarted(_) | End::Lost => HookOutcome::SystemError,
            End::Cancelled => HookOutcome::Cancelled,
        }
    }

    /// Whether the next hook of the set runs after one with this outcome.
    #[must_use]
    pub fn goes_on(self) -> bool {
        matches!(self, HookOutcome::Ok | HookOutcome::Warning)
    }

    /// The one that stands for both.
    #[must_use]
    pub fn worst(self, other: HookOutcome) -> HookOutcome {
        self.max(other)
    }

    /// The code with which `hob hooks run` exits. A run that a signal cancelled dies by that
    /// signal instead.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            HookOutcome::Ok | HookOutcome::Warning => 0,
            HookOutcome::Error => 1,
            HookOutcome::Interrupt => 3,
            HookOutcome::Timeout => 4,
            HookOutcome::SystemError => 5,
            HookOutcome::Cancelled => 6,
        }
    }

    /// The word for it, as in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            HookOutcome::Ok => "ok",
            HookOutcome::Warning => "warning",
            HookOutcome::Interrupt => "interrupt",
            HookOutcome::Error => "error",
            HookOutcome::Timeout => "timeout",
            HookOutcome::SystemError => "system-error",
            HookOutcome::Cancelled => "cancelled",
        }
    }
}

/// How a hook ended, as whoever ran it saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It exited with this code.
    Exited(u8),
    /// This signal ended it, and nobody here had sent it.
    Signalled(u8),
    /// Its time was over, and it was ended.
    TimedOut,
    /// It could not be started.
    NotStarted(Trouble),
    /// It was given to a process that ended before it said what became of the hook.
    Lost,
    /// It was ended because its set was cancelled.
    Cancelled,
}

/// Why a hook could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// The file is no longer there.
    Gone,
    /// The file may not be executed.
    Permission,
    /// What its first line names is not there.
    NoInterpreter,
    /// The kernel cannot execute it: no `#!`, and no program of this machine.
    Format,
    /// It was open for writing, and stayed so.
    Busy,
    /// Arguments and environment are too large together.
    TooLarge,
    /// No process, no memory or no descriptor was to be had.
    Resources,
    /// Anything else.
    Other,
}

/// Linux's names of the signals 1 to 31, on the machines that hob runs on.
const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// A signal's name, as people know it: `SIGTERM`.
#[must_use]
pub fn signal_name(number: u8) -> String {
    let name = usize::from(number).checked_sub(1).and_then(|at| SIGNALS.get(at));
    name.map_or_else(|| format!("signal {number}"), |name| format!("SIG{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_exit_code_has_the_outcome_that_the_page_says() {
        for code in 0..=255_u8 {
            let want = match code {
                0 => HookOutcome::Ok,
                1..=31 => HookOutcome::Error,
                32..=63 => HookOutcome::Warning,
                100 => HookOutcome::Interrupt,
                64..=255 => HookOutcome::Error,
            };
            assert_eq!(HookOutcome::of(&End::Exited(code)), want, "{code}");
        }
    }

    #[test]
    fn signals_have_their_names() {
        let names: Vec<String> = [2, 9, 15, 31, 0, 40].into_iter().map(signal_name).collect();
        assert_eq!(names, ["SIGINT", "SIGKILL", "SIGTERM", "SIGSYS", "signal 0", "signal 40"]);
    }

    #[test]
    fn only_success_and_warnings_go_on() {
        let going: Vec<_> = HookOutcome::ALL.into_iter().filter(|one| one.goes_on()).collect();
        assert_eq!(going, [HookOutcome::Ok, HookOutcome::Warning]);
    }

    #[test]
    fn the_codes_of_a_run_are_those_of_the_page() {
        let codes: Vec<u8> = HookOutcome::ALL.iter().map(|one| one.exit_code()).collect();
        assert_eq!(codes, [0, 0, 3, 1, 4, 5, 6]);
        for one in HookOutcome::ALL {
            let json = serde_json::to_string(&one).unwrap();
            assert_eq!(json, format!("\"{}\"", one.word()));
        }
    }
}
