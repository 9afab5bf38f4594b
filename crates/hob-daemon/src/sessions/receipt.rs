//! The receipt of an eval.

use hob_core::ids::Time;
use hob_core::phase::{Mark, Marks};
use hob_core::receipt::{OutcomePart, PhasePart, ProgramPart, Receipt, SCHEMA, WorkerPart};
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
        let phases = PhasePart::all(&marks);
        let total_us = now.us_since(done.began);
        let (kind, code) = match (done.lost, done.interrupted, done.ok) {
            (true, false, _) => ("lost", None),
            (_, true, _) => ("cancelled", None),
            (false, false, ok) => ("exited", Some(u8::from(!ok))),
        };
        let began = Timestamp::now() - SignedDuration::from_micros(total_us.cast_signed());
        self.recorder.record(Receipt {
            schema: SCHEMA.to_owned(),
            call: self.recorder.next_call(),
            at: format::moment(began),
            program: ProgramPart {
                id: None,
                name: process.name.clone(),
                target: process.name.clone(),
                runtime: process.language.to_owned(),
                interpreter: Some(process.interpreter.clone()),
                arguments: 0,
            },
            caller_pid: known.pid,
            directory: None,
            purpose: None,
            warm: !fresh,
            reason: if fresh { "session-started" } else { "session" }.to_owned(),
            isolation: "session".to_owned(),
            outcome: OutcomePart {
                kind: kind.to_owned(),
                code,
                signal: None,
                phase: (kind == "lost").then(|| "main".to_owned()),
            },
            phases,
            total_us,
            usage: None,
            worker: Some(WorkerPart { pid: process.pid, generation: session.0 }),
            cold_us: None,
            gain: None,
            demoted: None,
            imported: None,
            message: None,
            hooks: None,
            trace: None,
        });
    }
}
