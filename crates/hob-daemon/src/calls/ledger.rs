//! The calls that are open, with everything that is needed to answer them and to write their
//! receipts. One entry per call, from its arrival until its receipt.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use hob_core::event::{Found, Performed};
use hob_core::ids::{CallId, ProgramId, Time, WorkerId};
use hob_core::key::Key;
use hob_core::outcome::{CancelledBy, ColdReason, Outcome};
use hob_core::phase::{Mark, Marks};
use hob_core::receipt::trace::{Parent, TracePart};
use hob_core::receipt::{ImportedPart, OutcomePart, ProgramPart, Receipt, UsagePart, WorkerPart};
use hob_core::status::ColdPart;
use hob_resolve::Program;
use hob_runtimes::RuntimeId;
use hob_wire::call::{Origin, Purpose, Signal, Streams, Terminal, Usage, World};
use hob_wire::exit::Exit;
use hob_wire::strings::Strings;

use crate::channel::Stream;
use crate::inputs::CallFds;
use crate::recorder::{format, ring};
use crate::warm::programs::Entry as Known;

/// How long a receipt waits for its worker's usage after all else is known.
const USAGE_WAIT_US: u64 = 1_000_000;
/// One open call.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: CallId,
    pub(crate) caller: Arc<Stream>,
    /// What its standard streams are.
    pub(crate) streams: Streams,
    /// Until the call is given or runs cold.
    pub(crate) fds: Option<CallFds>,
    /// Which of 0 to 2 are closed.
    pub(crate) closed: u8,
    /// The numbers of its descriptors beyond 0 to 2.
    pub(crate) beyond: Vec<u32>,
    pub(crate) program: ProgramId,
    pub(crate) resolved: Option<Program>,
    /// Exit code and text, where it could not be resolved.
    pub(crate) refusal: Option<(u8, String)>,
    /// The caller's working directory.
    pub(crate) directory: Vec<u8>,
    /// What its outcome is for.
    pub(crate) purpose: Purpose,
    pub(crate) key: Option<Key>,
    pub(crate) name: String,
    pub(crate) arguments: usize,
    pub(crate) caller_pid: u32,
    /// The processor that it called from.
    pub(crate) processor: u32,
    /// The caller's terminal.
    pub(crate) terminal: Terminal,
    /// When its worker was known to be in the caller's process group.
    pub(crate) joined_ns: Option<u64>,
    pub(crate) world: World,
    /// A daemon that it starts would be worse than this one in nothing, and better in what sends it
    /// cold.
    pub(crate) surpasses: bool,
    pub(crate) env: Arc<Strings>,
    pub(crate) marks: Marks,
    pub(crate) at: jiff::Timestamp,
    /// Where a learning run leaves its notes.
    pub(crate) notes: Option<PathBuf>,
    /// A copy of a layer is to tell what it loads, and has not.
    pub(crate) profiles: bool,
    /// Signals that came before the call was given.
    pub(crate) signals: Vec<u8>,
    pub(crate) worker: Option<WorkerId>,
    pub(crate) worker_part: Option<WorkerPart>,
    pub(crate) usage: Option<Usage>,
    /// Why the program is not forked, if it is not.
    pub(crate) demoted: Option<String>,
    /// What it imported itself, once its worker has said so.
    pub(crate) imported: Option<ImportedPart>,
    pub(crate) settled: Option<(Outcome, Performed)>,
    pub(crate) company: Company,
    /// The worker itself has told the caller.
    pub(crate) answered: bool,
    pub(crate) caller_gone: bool,
    /// The worker's process has ended, or nobody waits for one.
    pub(crate) worker_gone: bool,
    /// When its process was seen to have ended.
    pub(crate) worker_ended: Option<Time>,
    /// The worker has said its last word, or nobody waits for one.
    pub(crate) worker_silent: bool,
}

/// Which other calls there were beside a call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Company {
    /// None ran beside it.
    pub(crate) alone: bool,
    /// How many had come with it.
    number: u64,
}

/// All open calls.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    calls: HashMap<CallId, Entry>,
    /// Settled calls whose usage is still to come, with the time at which it is given up.
    waiting: Vec<(Time, CallId)>,
    /// Calls that have come.
    came: u64,
    pub(crate) warm_total: u64,
    pub(crate) cold_total: u64,
    /// The same by reason code.
    cold_by: BTreeMap<&'static str, u64>,
    pub(crate) refused_total: u64,
    pub(crate) lost_total: u64,
}

impl Ledger {
    pub(crate) fn open(&mut self, id: CallId, mut entry: Entry) {
        self.came += 1;
        let received = entry.marks.get(Mark::Received).unwrap_or_default();
        ring::edge(id, Mark::Received, received.0);
        entry.company = Company { number: self.came, alone: self.running() == 0 };
        self.calls.insert(id, entry);
    }

    pub(crate) fn get(&mut self, id: CallId) -> Option<&mut Entry> {
        self.calls.get_mut(&id)
    }

    /// Takes a call out that leaves no receipt.
    pub(crate) fn forget(&mut self, id: CallId) -> Option<Entry> {
        self.calls.remove(&id)
    }

    /// Takes down what became of a call.
    pub(crate) fn settle(&mut self, id: CallId, outcome: Outcome, how: Performed) {
        let came = self.came;
        if let Some(entry) = self.calls.get_mut(&id) {
            entry.settled = Some((outcome, how));
            entry.company.alone &= entry.company.number == came;
        }
    }

    /// How many calls are not settled.
    pub(crate) fn running(&self) -> u64 {
        self.calls.values().filter(|entry| entry.settled.is_none()).count() as u64
    }

    /// Counts an outcome.
    pub(crate) fn count(&mut self, outcome: Outcome, how: Performed) {
        match how {
            Performed::Warm { .. } => self.warm_total += 1,
            Performed::Cold(reason) | Performed::InPlace(reason) => {
                self.cold_total += 1;
                *self.cold_by.entry(reason.code()).or_default() += 1;
            }
            Performed::Not => {}
        }
        match outcome {
            Outcome::Refused(_) => self.refused_total += 1,
            Outcome::Lost(_) => self.lost_total += 1,
            Outcome::Exited(_) | Outcome::TimedOut(_) | Outcome::Cancelled(_) => {}
        }
    }

    /// Why calls were sent cold, the most frequent reason first.
    pub(crate) fn cold(&self) -> Vec<ColdPart> {
        let part = |(reason, total): (&&str, &u64)| ColdPart {
            reason: (*reason).to_owned(),
            total: *total,
        };
        let mut parts: Vec<_> = self.cold_by.iter().map(part).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.total));
        parts
    }

    /// Closes the call if all that belongs to its receipt is known, or will not come.
    pub(crate) fn close_if_complete(&mut self, id: CallId, now: Time) -> Option<Entry> {
        let entry = self.calls.get(&id)?;
        if entry.settled.is_none() || !entry.caller_gone {
            return None;
        }
        if entry.worker_gone && entry.worker_silent {
            return self.calls.remove(&id).map(Entry::completed);
        }
        self.waiting.push((now.after_us(USAGE_WAIT_US), id));
        None
    }

    /// Closes a call whose usage has not come in time.
    pub(crate) fn close_overdue(&mut self, now: Time) -> Option<(CallId, Entry)> {
        loop {
            let at = self.waiting.iter().position(|(due, _)| *due <= now)?;
            let (_, id) = self.waiting.swap_remove(at);
            if let Some(entry) = self.calls.remove(&id) {
                return Some((id, entry.completed()));
            }
        }
    }

    /// Closes all calls that are settled, in the order in which they came.
    pub(crate) fn close_settled(&mut self) -> Vec<(CallId, Entry)> {
        let settled = self.calls.extract_if(|_, entry| entry.settled.is_some());
        let mut closed: Vec<_> = settled.map(|(id, entry)| (id, entry.completed())).collect();
        closed.sort_by_key(|(id, _)| *id);
        closed
    }

    /// Whether the receipt of a call whose caller has left is still to come, within its bounds.
    pub(crate) fn is_waiting(&self) -> bool {
        self.calls.values().any(|entry| entry.caller_gone)
    }

    /// Whether this process has calls without a receipt.
    pub(crate) fn has_calls_of(&self, caller_pid: u32) -> bool {
        self.calls.values().any(|entry| entry.caller_pid == caller_pid)
    }

    /// When the next receipt is given up waiting for.
    pub(crate) fn next_deadline(&mut self) -> Option<Time> {
        let calls = &self.calls;
        self.waiting.retain(|(_, id)| calls.contains_key(id));
        self.waiting.iter().map(|(due, _)| *due).min()
    }
}

impl Entry {
    /// Whether the worker has had this signal from the terminal, which sent it to the whole group.
    ///
    /// What the client began to read after `joined_ns` has reached the worker: it came after the
    /// worker had joined, or it was pending at that time, and was delivered for that.
    pub(crate) fn has_had(&self, signal: Signal) -> bool {
        signal.origin == Origin::Terminal
            && self.joined_ns.is_some_and(|joined_ns| signal.at_ns >= joined_ns)
    }

    /// The worker that was to perform it never read it: its caller may have to.
    pub(crate) fn was_not_given(&mut self) {
        self.worker = None;
        self.profiles = false;
        self.worker_gone = true;
        self.worker_silent = true;
    }

    /// The receipt of a settled call.
    pub(crate) fn receipt(&self, id: CallId, known: &Known) -> Option<Receipt> {
        let (outcome, how) = self.settled?;
        let (isolation, reason) = match how {
            Performed::Warm { recipe, found, .. } => (recipe.name().code(), found_code(found)),
            Performed::Cold(reason) | Performed::InPlace(reason) => ("spawn", reason.code()),
            Performed::Not => ("none", outcome_code(outcome)),
        };
        let (program, outcome) = (self.program_part(known), outcome_part(outcome));
        let mut receipt = Receipt::new(id.0, format::moment(self.at), program, outcome);
        receipt.time(&self.marks);
        receipt.caller_pid = self.caller_pid;
        receipt.directory = Some(String::from_utf8_lossy(&self.directory).into_owned())
            .filter(|directory| !directory.is_empty());
        receipt.purpose = self.purpose.word().map(str::to_owned);
        receipt.warm = matches!(how, Performed::Warm { .. });
        (receipt.reason, receipt.isolation) = (reason.to_owned(), isolation.to_owned());
        receipt.usage = self.usage.map(|usage| UsagePart {
            user_us: usage.user_us,
            system_us: usage.system_us,
            peak_kib: usage.peak_kib,
        });
        (receipt.worker, receipt.cold_us) = (self.worker_part, known.cold_us);
        (receipt.demoted, receipt.imported) = (self.demoted.clone(), self.imported);
        receipt.trace = self.trace(id);
        Some(receipt)
    }

    /// Where its worker has told the daemon no end, that of the process is the program's, unless the
    /// caller has heard of one before.
    fn completed(mut self) -> Entry {
        if let (None, Some(ended)) = (self.marks.get(Mark::Finished), self.worker_ended) {
            let settled = self.marks.get(Mark::Settled);
            self.stamp(Mark::Finished, settled.map_or(ended, |settled| settled.min(ended)).0);
        }
        self
    }

    /// Where it stands in the trace that its caller's environment names.
    fn trace(&self, id: CallId) -> Option<TracePart> {
        let parent = Parent::read(self.env.variable(b"TRACEPARENT")?)?;
        // The number alone begins again with an emptied state directory.
        let seed = id.0 ^ u64::try_from(self.at.as_microsecond()).unwrap_or(0).rotate_left(20);
        Some(parent.call(seed).part())
    }

    fn program_part(&self, known: &Known) -> ProgramPart {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let resolved = self.resolved.as_ref();
        let runtime = resolved.map_or(RuntimeId::Exec, |program| program.runtime).row().name;
        ProgramPart {
            id: Some(&known.digest).filter(|digest| !digest.is_empty()).cloned(),
            name: self.name.clone(),
            target: resolved.map_or_else(String::new, |program| text(&program.target.name)),
            runtime: runtime.to_owned(),
            interpreter: resolved.and_then(Program::interpreter).map(text),
            arguments: self.arguments,
        }
    }

    /// The phase that a call is in: the one after the last mark it passed.
    pub(crate) fn stamp(&mut self, mark: Mark, ns: u64) {
        self.marks.stamp(mark, Time(ns));
        ring::edge(self.id, mark, ns);
    }
}

/// The reason code of a warm receipt.
fn found_code(found: Found) -> &'static str {
    match found {
        Found::CopyReady => "copy-ready",
        Found::StandbyReady => "standby-ready",
        Found::ForkedOnDemand => "forked-on-demand",
        Found::Queued => "queued",
        Found::Bare => hob_core::receipt::BARE,
        Found::Installed => hob_core::receipt::INSTALLED,
    }
}

fn outcome_code(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Refused(reason) => reason.code(),
        Outcome::Exited(_) => "exited",
        Outcome::TimedOut(_) => "timed-out",
        Outcome::Cancelled(CancelledBy::Caller) => "caller-left",
        Outcome::Cancelled(CancelledBy::Stop) => ColdReason::Stopping.code(),
        Outcome::Lost(_) => "lost",
    }
}

fn outcome_part(outcome: Outcome) -> OutcomePart {
    let (kind, code, signal, phase) = match outcome {
        Outcome::Exited(Exit::Code(code)) => ("exited", Some(code), None, None),
        Outcome::Exited(Exit::Signal(signal)) => ("exited", None, Some(signal), None),
        Outcome::TimedOut(phase) => ("timed-out", None, None, Some(phase)),
        Outcome::Cancelled(_) => ("cancelled", None, None, None),
        Outcome::Refused(_) => ("refused", None, None, None),
        Outcome::Lost(phase) => ("lost", None, None, Some(phase)),
    };
    let phase = phase.map(|phase| phase.name().to_owned());
    OutcomePart { kind: kind.to_owned(), code, signal, phase }
}
