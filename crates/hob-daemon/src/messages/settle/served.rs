//! Receipts of requests that a front has answered itself.

use hob_core::ids::Time;
use hob_core::phase::{Mark, Marks};
use hob_core::receipt::trace::TracePart;
use hob_core::receipt::{FRONT, MessagePart, ProgramPart, Receipt};
use hob_os::clock;
use hob_wire::message::Served;

use super::super::Messages;
use super::super::thin::ANSWERED;
use super::{named, receipt, stamp_head};
use crate::ctx::Ctx;
use crate::inputs::SenderId;

impl Messages {
    /// A front has answered requests itself, of which it tells one.
    pub(in crate::messages) fn served(
        &mut self,
        ctx: &mut Ctx<'_>,
        sender: SenderId,
        served: &Served<'_>,
        mount: &[u8],
    ) {
        let ago = clock::now_ns().saturating_sub(served.begun_ns);
        let ago = jiff::SignedDuration::from_nanos(i64::try_from(ago).unwrap_or(0));
        let at = jiff::Timestamp::now().checked_sub(ago).unwrap_or_default();
        let program = ProgramPart::named(String::from_utf8_lossy(mount).into_owned(), FRONT);
        let message = MessagePart {
            bytes: usize::try_from(served.bytes).unwrap_or(usize::MAX),
            stands_for: served.stands_for,
            protocol: named(Some(served.protocol)),
            rights: served.judged.code().map(str::to_owned),
            status: u16::try_from(served.status).ok(),
            ..MessagePart::default()
        };
        let call = ctx.recorder.next_call();
        ctx.recorder.record(Receipt {
            caller_pid: self.senders.get(&sender).map_or(0, |sender| sender.pid),
            reason: FRONT.to_owned(),
            isolation: FRONT.to_owned(),
            trace: TracePart::of(served.trace),
            ..receipt((call, at, &marks(served)), program, ANSWERED, message)
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
