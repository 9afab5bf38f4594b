//! What became of a call, and the reason codes. Exit (what the process did) is not outcome (what
//! became of the call) is not phase (where its time went).
//!
//! The codes are stable: scripts read them. `docs/reason-codes.md` lists each with its meaning.

use hob_wire::exit::Exit;

use crate::phase::Phase;

/// What became of a call. Exactly one per call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The program ended.
    Exited(Exit),
    /// The deadline passed in this phase, and hob ended it.
    TimedOut(Phase),
    /// It was given up before it ended.
    Cancelled(CancelledBy),
    /// It was not run.
    Refused(RefuseReason),
    /// It was given in or before this phase, and nothing is known of its end.
    Lost(Phase),
}

/// Who gave a call up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelledBy {
    /// The caller's process ended.
    Caller,
    /// `hob stop`.
    Stop,
}

/// An enum without data whose variants each have a code. Every one of them is in `ALL`, so that no
/// table and no test can leave one out.
macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $code:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// Every reason, for tables and tests.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The stable code, as in JSON.
            #[must_use]
            pub fn code(self) -> &'static str {
                match self { $($name::$variant => $code,)* }
            }
        }
    };
}

pub(crate) use codes;

codes! {
    /// Why a call ran cold although the daemon was there.
    ColdReason {
        /// `--cold`.
        Asked = "asked",
        /// `--isolation spawn`.
        SpawnAsked = "spawn-asked",
        /// No runtime of hob's hosts this program.
        NotHosted = "not-hosted",
        /// The interpreter is hosted, and this way of using it is not (`-c`, `-`, `-i`).
        NotAProgram = "not-a-program",
        /// An interpreter version that the runtime does not support.
        InterpreterVersion = "interpreter-version",
        /// The first call: it runs under the recorder.
        Learning = "learning",
        /// Another call of the program is learning now.
        BeingLearned = "being-learned",
        /// The zygote or the first standby is being made.
        Warming = "warming",
        /// What was warm is no longer what a cold start would load.
        Stale = "stale",
        /// The caller's groups, capabilities, namespaces or confinement differ from the daemon's.
        Context = "context",
        /// A limit is set on the caller's control group, or on the daemon's, and it is another.
        Cgroup = "cgroup",
        /// The caller's priority is above the daemon's.
        Priority = "priority",
        /// The caller's hard limits are above the daemon's.
        Limits = "limits",
        /// Descriptors beyond 0 to 2 are open that a worker would not take.
        Descriptors = "descriptors",
        /// The caller is traced.
        Traced = "traced",
        /// The session of the caller's terminal has no launcher (yet).
        Terminal = "terminal",
        /// The program could not be warmed; see `hob status`.
        WarmFailed = "warm-failed",
        /// Too many calls at once, or the queue was full or slow.
        Busy = "busy",
        /// The memory budget has no room for this program.
        Memory = "memory",
        /// A variable that what is loaded ahead depends on has another value in each call.
        Variables = "variables",
        /// The program was slower warm than cold over its last calls.
        SlowerWarm = "slower-warm",
        /// The last warm call of the same arguments failed: this one is compared with it.
        Compared = "compared",
        /// The program fails warm where it succeeds cold.
        Differs = "differs",
        /// The program is not as it was loaded ahead, which the worker saw: it executed the program
        /// cold in its own place. So it does for `Priority`, `Limits`, `Descriptors`, and the six that
        /// follow.
        NotAsLoaded = "not-as-loaded",
        /// A signal is ignored or blocked, and the runtime has started otherwise.
        Signals = "signals",
        /// The runtime has started for other processors.
        Processors = "processors",
        /// The runtime has decided on encodings before its call.
        Encodings = "encodings",
        /// The runtime cannot take on this working directory.
        Directory = "directory",
        /// The runtime cannot take on this environment.
        Environment = "environment",
        /// The program was edited, and begins otherwise than what is loaded ahead of its calls.
        Edited = "edited",
        /// The worker left before the call was given.
        WorkerClosed = "worker-closed",
        /// The daemon is stopping.
        Stopping = "stopping",
    }
}

codes! {
    /// Why a call was refused.
    RefuseReason {
        /// No such program.
        NotFound = "not-found",
        /// It cannot be executed.
        NotExecutable = "not-executable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_different_and_lower_case() {
        let mut codes: Vec<_> = ColdReason::ALL.iter().map(|reason| reason.code()).collect();
        codes.extend(RefuseReason::ALL.iter().map(|reason| reason.code()));
        for code in &codes {
            assert!(code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{code}");
        }
        let count = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), count);
    }
}
