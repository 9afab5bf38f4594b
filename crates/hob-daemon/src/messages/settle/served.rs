//! Receipts of requests that a front has answered itself.

use hob_core::ids::Time;
use hob_core::phase::{Mark, Marks};
use hob_core::receipt::{FRONT, MessagePart, OutcomePart, PhasePart, ProgramPart, Receipt, SCHEMA};
use hob_os::clock;
use hob_wire::message::Served;

use super::super::Messages;
use super::super::thin::ANSWERED;
use super::{named, stamp_head};
use crate::ctx::Ctx;
use crate::inputs::SenderId;
use crate::recorder::format;

impl Messages {
    /// A front has answered requests itself, of which it tells one.
    pub(in crate::messages) fn served(
        &mut self,
        ctx: &mut Ctx<'_>,
        sender: SenderId,
        served: &Served<'_>,
        mount: &[u8],
    ) {
        let marks = marks(served);
        let phases = PhasePart::all(&marks);
        let total_us = phases.last().map_or(0, |last| last.start_us + last.us);
        let ago = clock::now_ns().saturating_sub(served.begun_ns);
        let ago = jiff::SignedDuration::from_nanos(i64::try_from(ago).unwrap_or(0));
        let at = jiff::Timestamp::now().checked_sub(ago).unwrap_or_default();
        let mount = String::from_utf8_lossy(mount).into_owned();
        ctx.recorder.record(Receipt {
            schema: SCHEMA.to_owned(),
            call: ctx.recorder.next_call(),
            at: format::moment(at),
            program: ProgramPart {
                id: None,
                name: mount.clone(),
                target: mount,
                runtime: FRONT.to_owned(),
                interpreter: None,
                arguments: 0,
            },
            caller_pid: self.senders.get(&sender).map_or(0, |sender| sender.pid),
            directory: None,
            warm: false,
            reason: FRONT.to_owned(),
            isolation: FRONT.to_owned(),
            outcome: OutcomePart {
                kind: ANSWERED.to_owned(),
                code: None,
                signal: None,
                phase: None,
            },
            phases,
            total_us,
            usage: None,
            worker: None,
            cold_us: None,
            gain: None,
            demoted: None,
            imported: None,
            hooks: None,
            message: Some(MessagePart {
                bytes: usize::try_from(served.bytes).unwrap_or(usize::MAX),
                stands_for: served.stands_for,
                protocol: named(Some(served.protocol)),
                rights: served.judged.code().map(str::to_owned),
                status: u16::try_from(served.status).ok(),
            }),
        });
    }
}

/// The marks that a request has passed.
fn marks(served: &Served<'_>) -> Marks {
    let mut marks = Marks::default();
    stamp_head(&mut marks, (served.head_ns, served.begun_ns, served.judged_ns));
    let read = [
        (Mark::Queued, served.queued_ns),
        (Mark::Found, served.found_ns),
        (Mark::Read, served.read_ns),
        (Mark::Passed, served.passed_ns),
    ];
    for (mark, at_ns) in read.into_iter().filter(|(_, at_ns)| *at_ns > 0) {
        marks.stamp(mark, Time(at_ns));
    }
    marks
}
