//! The record of a call, as data. How it is stored is the recorder's business; `docs/receipts.md`
//! is the same in words. Environment values are never part of it.

pub mod naming;
pub mod reason;
pub mod trace;

use serde::{Deserialize, Serialize};

use crate::phase::{Marks, Phase};
use trace::TracePart;

/// The name of the format. A change that an old reader cannot ignore raises the number.
pub const SCHEMA: &str = "hob.receipt/1";

/// The record of one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// [`SCHEMA`].
    pub schema: String,
    /// The call's number, unique in this recorder.
    pub call: u64,
    /// When the call was received: RFC 3339 with microseconds, UTC.
    pub at: String,
    /// What was called.
    pub program: ProgramPart,
    /// The caller's process id.
    pub caller_pid: u32,
    /// The caller's working directory; absent for what was not called from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// What its outcome was for, where a verb of hob's made it (`verify`, `ab`, `check`); absent where
    /// it was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// Whether a warm worker performed it.
    pub warm: bool,
    /// The reason code: why cold, or what a warm call found.
    pub reason: String,
    /// `spawn`, `standby` or `fork`.
    pub isolation: String,
    /// What became of it.
    pub outcome: OutcomePart,
    /// Where the time went, in order.
    pub phases: Vec<PhasePart>,
    /// From the first mark to the last, in microseconds.
    pub total_us: u64,
    /// What the worker (or the cold process) used; absent when nobody could tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsagePart>,
    /// The worker that performed it; absent for a cold run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerPart>,
    /// The newest cold run of the same program, in microseconds, if there was one. It may have
    /// done other work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_us: Option<u64>,
    /// What a warm call saved of its start-up; absent where it cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<GainPart>,
    /// What a warm call imported itself; absent where all was loaded ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedPart>,
    /// Why the program is kept ready as fresh processes although a fork would be faster; absent
    /// where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demoted: Option<String>,
    /// What is said of a message alone; absent for other calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessagePart>,
    /// What is said of a run of hooks alone; absent for other calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<HooksPart>,
    /// Where it stands in a trace; absent where its caller named none, but for an ask of another host,
    /// which begins one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TracePart>,
}

/// The reason code of a call that a copy of its bare interpreter performed.
pub const BARE: &str = "bare-interpreter";
/// The same of a copy with its installed packages.
pub const INSTALLED: &str = "installed-packages";
/// The isolation, runtime and reason of a request that the front of a site answered itself.
pub const FRONT: &str = "front";
/// The same where another host performed it.
pub const ELSEWHERE: &str = "other-host";
/// The reason code of a tell that a stream between hosts has, for one of them to perform it.
pub const STREAM: &str = "stream";
/// The outcome of such a tell.
pub const ACCEPTED: &str = "accepted";

impl Receipt {
    /// The one way to make a receipt: of which call, when it came (RFC 3339), what was called, and what
    /// became of it. All else is as of a call of which nothing more is known, for its maker to say.
    #[must_use]
    pub fn new(call: u64, at: String, program: ProgramPart, outcome: OutcomePart) -> Receipt {
        Receipt {
            schema: SCHEMA.to_owned(),
            call,
            at,
            program,
            caller_pid: 0,
            directory: None,
            purpose: None,
            warm: false,
            reason: String::new(),
            isolation: String::new(),
            outcome,
            phases: Vec::new(),
            total_us: 0,
            usage: None,
            worker: None,
            cold_us: None,
            gain: None,
            imported: None,
            demoted: None,
            message: None,
            hooks: None,
            trace: None,
        }
    }

    /// Where its time went: the phases between these marks, and their sum.
    pub fn time(&mut self, marks: &Marks) {
        self.phases = PhasePart::all(marks);
        self.total_us = self.phases.last().map_or(0, |last| last.start_us + last.us);
    }

    /// Whether the call found warm state of its own program: a copy of a layer, which is warm too,
    /// has none.
    #[must_use]
    pub fn found_its_own(&self) -> bool {
        self.warm && ![BARE, INSTALLED].contains(&self.reason.as_ref())
    }
}

/// What a warm call saved, see [`crate::calls::saving`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GainPart {
    /// What it saved at least, in microseconds.
    pub saved_us: u64,
    /// What it saved at most.
    pub most_us: u64,
    /// How much longer it took than the slowest cold run of the same arguments.
    pub lost_us: u64,
    /// Cold runs of the same arguments that it rests on; without one nothing is saved for sure.
    pub cold_runs: u64,
}

/// What a warm call imported itself, beyond what was loaded ahead.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedPart {
    /// How many modules.
    pub modules: usize,
    /// Of them, those that could have been loaded ahead: others are left to each call.
    pub beyond: usize,
    /// Whether these are loaded ahead of calls from now on.
    pub ahead: bool,
}

/// What the receipt of a run of hooks says besides: a receipt stands for the whole run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HooksPart {
    /// How many sets ended: one a target.
    pub targets: u64,
    /// Of them, those that did not end as ok or with warnings.
    pub failed: u64,
    /// Hooks that were started as new processes when their turn came.
    #[serde(alias = "afresh")]
    pub spawned: u64,
    /// Hooks that were started before their turn, and held.
    #[serde(alias = "ahead")]
    pub prestarted: u64,
    /// Hooks that were forked from their shell.
    pub forked: u64,
    /// Hooks that ran in a warm interpreter.
    pub warm: u64,
}

/// What a message's receipt says besides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagePart {
    /// The bytes of its payload; 0 where only its worker knows.
    pub bytes: usize,
    /// How many messages this receipt stands for: those before it that have none of their own, and
    /// itself; 0 where another stood for it before its client had all of its answer.
    pub stands_for: u64,
    /// What the client of a request speaks, as `HTTP/1.1`; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Where the answer about the rights of a request came from: `asked`, `kept` or `shared`; absent
    /// where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<String>,
    /// The status of an answer that the front of a site gave itself; absent for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The other host that performed it, or said why not, and the number of its call there, as
    /// `web-1/42`; absent for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The time that was spent there, in µs, by that host's clock; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_us: Option<u64>,
    /// The other host that asked it, and the number of its call there; absent for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<String>,
    /// Over how many hosts such an ask has come; absent for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hops: Option<u64>,
}

/// What was called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramPart {
    /// What tells programs apart: the same for calls of the same file or module by the same
    /// interpreter and options; absent for what did not resolve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The name as the caller typed it.
    pub name: String,
    /// The file or module that it resolved to.
    pub target: String,
    /// The runtime's name in the table; `exec`: none hosts it.
    pub runtime: String,
    /// The interpreter's path; absent for `exec`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// How many arguments it was called with. Their text may hold secrets and is not stored.
    pub arguments: usize,
}

impl ProgramPart {
    /// What no worker of this host performed: nothing but its name is known, and what did.
    #[must_use]
    pub fn named(name: String, by: &str) -> ProgramPart {
        ProgramPart {
            id: None,
            target: name.clone(),
            name,
            runtime: by.to_owned(),
            interpreter: None,
            arguments: 0,
        }
    }
}

/// What became of the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomePart {
    /// `exited`, `timed-out`, `cancelled`, `refused`, `lost` or `unknown`; of a message also
    /// `answered`, `accepted` or the reason of its failure.
    pub kind: String,
    /// The exit code, if it exited by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u8>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<u8>,
    /// The phase in which it was timed out or lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

impl OutcomePart {
    /// An outcome of this kind, of which there is no more to say.
    #[must_use]
    pub fn of(kind: &str) -> OutcomePart {
        OutcomePart { kind: kind.to_owned(), code: None, signal: None, phase: None }
    }

    /// Whether nothing failed: the program exited with 0, a message was answered, or a stream has it.
    #[must_use]
    pub fn went_well(&self) -> bool {
        match self.kind.as_str() {
            "exited" => self.code == Some(0),
            kind => kind == "answered" || kind == ACCEPTED,
        }
    }
}

/// One phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhasePart {
    /// Its name, see [`crate::phase::Phase`].
    pub name: String,
    /// When it began, in microseconds after the first mark.
    pub start_us: u64,
    /// How long it took, in microseconds.
    pub us: u64,
}

impl PhasePart {
    /// The phases that were passed, in their order.
    #[must_use]
    pub fn all(marks: &Marks) -> Vec<Self> {
        let part = |(phase, start_us, us): (Phase, _, _)| Self {
            name: phase.name().to_owned(),
            start_us,
            us,
        };
        marks.phases().into_iter().map(part).collect()
    }
}

/// What a process used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsagePart {
    /// User CPU time in microseconds.
    pub user_us: u64,
    /// System CPU time in microseconds.
    pub system_us: u64,
    /// Peak resident memory in KiB.
    pub peak_kib: u64,
}

/// The worker that performed the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerPart {
    /// Its process id.
    pub pid: u32,
    /// The number of its zygote or standby: a new warm state has a higher one.
    pub generation: u64,
}
