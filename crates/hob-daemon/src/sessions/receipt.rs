//! The receipt of an eval.

use hob_core::ids::Time;
use hob_core::phase::{Mark, Marks};
use hob_core::receipt::{OutcomePart, ProgramPart, Receipt, WorkerPart};
use hob_core::sessions::dialogue::Done;
use hob_core::sessions::{ClientId, SessionId};
use hob_os::clock;
use jiff::{SignedDuration, Timestamp};

use super::Sessions;
use crate::recorder::format;

impl Sessions {
    /// Leaves the receipt of an eval that has ended.
    pub(super) fn leave_receipt(&mut self, client: ClientId, session: SessionId, done: Done) {
        let Some(process) = self.processes.get(&session) else { return };
        let Some(known) = self.clients.get_mut(&client) else { return };
        let fresh = std::mem::take(&mut known.fresh);
        let now = Time(clock::now_ns());
        let mut marks = Marks::default();
        marks.stamp(Mark::Received, done.began);
        marks.stamp(Mark::Finished, now);
        let total_us = now.us_since(done.began);
        let (kind, code) = match (done.lost, done.interrupted, done.ok) {
            (true, false, _) => ("lost", None),
            (_, true, _) => ("cancelled", None),
            (false, false, ok) => ("exited", Some(u8::from(!ok))),
        };
        let began = Timestamp::now() - SignedDuration::from_micros(total_us.cast_signed());
        let program = ProgramPart {
            interpreter: Some(process.interpreter.clone()),
            ..ProgramPart::named(process.name.clone(), process.language)
        };
        let phase = (kind == "lost").then(|| "main".to_owned());
        let outcome = OutcomePart { code, phase, ..OutcomePart::of(kind) };
        let call = self.recorder.next_call();
        let mut receipt = Receipt::new(call, format::moment(began), program, outcome);
        receipt.time(&marks);
        receipt.total_us = total_us;
        (receipt.caller_pid, receipt.warm) = (known.pid, !fresh);
        receipt.reason = if fresh { "session-started" } else { "session" }.to_owned();
        "session".clone_into(&mut receipt.isolation);
        receipt.worker = Some(WorkerPart { pid: process.pid, generation: session.0 });
        self.recorder.record(receipt);
    }
}
