//! Receipts of tells that streams have accepted: [`sampled`](super::sampled) by their addresses.

use std::sync::Arc;

use hob_core::ids::Time;
use hob_core::phase::{Mark, Marks};
use hob_core::receipt::{ACCEPTED, ELSEWHERE, MessagePart, ProgramPart, Receipt, STREAM};
use hob_os::clock;

use crate::ctx::Ctx;
use crate::messages::Messages;
use crate::messages::address::elsewhere;
use crate::messages::settle::receipt;

use super::sampled::Due;

/// A tell that is said to its stream.
#[derive(Debug)]
pub(super) struct Sent {
    at: jiff::Timestamp,
    at_ns: u64,
    /// The bytes of its payload.
    bytes: usize,
}

impl Sent {
    /// It is said now.
    pub(super) fn now(bytes: usize) -> Sent {
        Sent { at: jiff::Timestamp::now(), at_ns: clock::now_ns(), bytes }
    }
}

/// A tell that its stream has.
#[derive(Debug)]
pub(super) struct Accepted {
    address: Arc<[u8]>,
    sent: Sent,
    at: Time,
}

impl Messages {
    /// A stream has a tell.
    pub(super) fn accepted(&mut self, ctx: &mut Ctx<'_>, address: Arc<[u8]>, sent: Sent) {
        let at = Time(clock::now_ns());
        let accepted = Accepted { address: Arc::clone(&address), sent, at };
        let due = self.hosts.accepted.take(&*address, at, accepted);
        due.into_iter().for_each(|due| record(ctx, due));
    }
}

/// Leaves a receipt.
pub(super) fn record(ctx: &mut Ctx<'_>, (accepted, stands_for): Due<Accepted>) {
    let Accepted { address, sent, at } = accepted;
    let mut marks = Marks::default();
    marks.stamp(Mark::Received, Time(sent.at_ns));
    marks.stamp(Mark::Given, at);
    let name = String::from_utf8_lossy(elsewhere(&address).unwrap_or_default()).into_owned();
    let program = ProgramPart::named(name, ELSEWHERE);
    let message = MessagePart { bytes: sent.bytes, stands_for, ..MessagePart::default() };
    let call = ctx.recorder.next_call();
    ctx.recorder.record(Receipt {
        reason: STREAM.to_owned(),
        isolation: ELSEWHERE.to_owned(),
        ..receipt((call, sent.at, &marks), program, ACCEPTED, message)
    });
}
