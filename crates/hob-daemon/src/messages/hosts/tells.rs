//! Tells to programs of other hosts, and those that a stream gives to this one.

use std::sync::Arc;

use hob_core::hosts::tells::{self, End, Ended, KEPT_US, NotKept, Telling, Told};
use hob_core::hosts::{Order, addressed, is_subject};
use hob_core::ids::{CallId, Time};
use hob_core::requests::{Event, Given, Settled};
use hob_os::clock;
use hob_wire::message::{BODY_MAX, Manner, Reason, WORD_MAX};

use crate::ctx::Ctx;
use crate::messages::address::{elsewhere, has_key, of_others};
use crate::messages::route::Refused;
use crate::messages::tells::Burying;
use crate::messages::{Messages, OPEN_BYTES_MAX, Open, Said};
use crate::outbox::{self, Directory, MessageId};

use super::accepted::Sent;
use super::asks::not_asked;

/// A tell that a stream has given to this host.
#[derive(Debug)]
pub(in crate::messages) struct Streamed {
    /// Where its end is said.
    ack: String,
    program: String,
    delivered: u32,
    /// Who tells it.
    pub(in crate::messages) from: String,
}

impl Messages {
    /// The address of a tell whose program no `hob.toml` of its sender's names.
    pub(in crate::messages) fn address_elsewhere(
        &mut self,
        ctx: &mut Ctx<'_>,
        program: &[u8],
        absent: Refused,
    ) -> Result<Arc<[u8]>, (Reason, String)> {
        let name = String::from_utf8_lossy(program).into_owned();
        if let Some(from) = self.hosts.from(&name) {
            let (pool, _) = self.route(ctx, &from, program)?;
            return Ok(self.address_of(&from, program, pool));
        }
        if !self.hosts.is_configured() || !is_subject(&name) {
            let named = addressed(&name).and_then(|(name, host)| Some((name, host?)));
            return Err(named.map_or(absent.into(), |parts| not_asked(parts, Manner::Tell)));
        }
        if self.hosts.link.is_none() {
            let why = self.hosts.trouble.clone().unwrap_or_default();
            let text = format!("{name}: not a program of this host, and no other is told: {why}");
            return Err((Reason::Config, text));
        }
        Ok(of_others(program, false))
    }

    /// Says a tell to its stream; `false`: it is for a program of this host.
    pub(in crate::messages) fn tell_elsewhere(&mut self, message: &outbox::Message) -> bool {
        let Some(program) = elsewhere(&message.program) else { return false };
        let id = message.id;
        if !self.hosts.is_up {
            let why = self.hosts.trouble.clone();
            let why = why.unwrap_or_else(|| "there is no connection to other hosts yet".to_owned());
            self.tell_waits(id, &why, Directory::There);
            return true;
        }
        let telling = Telling {
            id: id.to_string(),
            program: String::from_utf8_lossy(program).into_owned(),
            key: message.key.clone().unwrap_or_default(),
            content_type: message.content_type.clone(),
            payload: message.payload.clone(),
        };
        if self.hosts.order(Order::Tell(Box::new(telling))) {
            let until = Time(clock::now_ns()).after_us(KEPT_US);
            let sent = Sent::now(message.payload.len());
            self.hosts.telling.insert(id, (until, sent));
        } else {
            let why = "the connection to other hosts takes no more";
            self.tell_waits(id, why, Directory::There);
        }
        true
    }

    /// A stream has a tell, or not.
    pub(super) fn kept(&mut self, ctx: &mut Ctx<'_>, id: &str, kept: Result<(), NotKept>) {
        let Some(id) = MessageId::parse(id) else { return };
        // A word that comes after it was said again is as good.
        let sent = self.hosts.telling.remove(&id).map(|(_, sent)| sent);
        match kept {
            Ok(()) => {
                if let Some(message) = self.tell_done(id) {
                    // Of one whose first word was given up nothing else is known.
                    let sent = sent.unwrap_or_else(|| Sent::now(0));
                    self.accepted(ctx, message.program, sent);
                }
            }
            Err(NotKept { why, never: true, .. }) => self.tell_failed(id, 1, &why),
            Err(NotKept { nobody: true, .. }) => {
                let address = self.tells.queue().program_of(id);
                let why = tells::nobody(address.is_some_and(|address| has_key(&address)));
                self.tell_waits(id, why, Directory::Gone);
            }
            Err(NotKept { why, .. }) => self.tell_waits(id, &why, Directory::There),
        }
        self.deliver_tells(ctx);
    }

    /// No word comes any more to what was told; or none has come in time.
    pub(super) fn not_kept(&mut self, why: &str, until: Option<Time>) {
        let late = |at: &Time| until.is_none_or(|until| *at <= until);
        let telling = &self.hosts.telling;
        let all: Vec<MessageId> =
            telling.iter().filter(|(_, (at, _))| late(at)).map(|(id, _)| *id).collect();
        for id in all {
            self.hosts.telling.remove(&id);
            self.tell_waits(id, why, Directory::There);
        }
    }

    /// A stream gives a tell to this host.
    pub(super) fn told_by_stream(&mut self, ctx: &mut Ctx<'_>, told: Told) {
        let (ack, program, delivered) =
            (told.ack.clone(), told.program.clone(), told.delivered.max(1));
        if self.open_told(ctx, told).is_err() {
            // Not the message's fault: another host may have what this one lacks.
            let delay_ms = if self.stopping { 0 } else { tells::delay_ms(delivered) };
            self.hosts.order(Order::Settle { program, ack, end: End::Again { delay_ms } });
        }
    }

    fn open_told(&mut self, ctx: &mut Ctx<'_>, told: Told) -> Result<(), ()> {
        let Told { program, id, from, key, content_type, payload, ack, delivered } = told;
        let is_large = payload.len() > BODY_MAX || content_type.len().max(key.len()) > WORD_MAX;
        if self.stopping || is_large || self.open_bytes + payload.len() > OPEN_BYTES_MAX {
            return Err(());
        }
        let way = self.hosts.from(&program).ok_or(())?;
        let (pool, _) = self.route(ctx, &way, program.as_bytes()).map_err(|_| ())?;
        let call = CallId(ctx.recorder.next_call());
        let open = Open {
            key: key.clone(),
            content_type,
            message_id: id.into_bytes(),
            payload,
            streamed: Some(Streamed { ack, program, delivered, from }),
            ..Open::new(Manner::Tell, pool, clock::now_ns())
        };
        self.opened(call, open);
        ctx.request(Event::Arrived { call, pool, key, deadline: None });
        Ok(())
    }

    /// A tell that a stream has given has its outcome here.
    pub(in crate::messages) fn streamed_settled(
        &mut self,
        open: &Open,
        streamed: &Streamed,
        outcome: Settled,
        why: &str,
    ) {
        let ended = match outcome {
            Settled::Answered if matches!(open.said, Some(Said::Answer { .. })) => Ended::Performed,
            Settled::Refused(_) | Settled::Cancelled | Settled::TimedOut { given: Given::No } => {
                Ended::NotTried
            }
            Settled::Lost if self.stopping => Ended::NotTried,
            Settled::Answered | Settled::Lost | Settled::TimedOut { given: Given::Yes } => {
                Ended::Failed
            }
        };
        let tries = self.handlers.get(&open.pool).map_or(outbox::TRIES, |loaded| loaded.tries);
        let (program, ack) = (streamed.program.clone(), streamed.ack.clone());
        let end = tells::settle(ended, streamed.delivered, tries);
        let end = end.or_else(|| self.bury_streamed(open, streamed, why));
        if let Some(end) = end {
            self.hosts.order(Order::Settle { program, ack, end });
        }
    }

    /// Keeps a dead letter; its stream hears of it when it is on the disk. Otherwise what is said to
    /// the stream now.
    fn bury_streamed(&mut self, open: &Open, streamed: &Streamed, why: &str) -> Option<End> {
        let later = Some(End::Again { delay_ms: tells::delay_ms(streamed.delivered) });
        let Some(from) = self.hosts.from(&streamed.program) else { return later };
        let address = self.address_of(&from, streamed.program.as_bytes(), open.pool);
        let burying = Burying {
            ack: streamed.ack.clone(),
            program: streamed.program.clone(),
            tries: streamed.delivered,
            why: why.to_owned(),
        };
        let id = std::str::from_utf8(&open.message_id).ok().and_then(MessageId::parse);
        match self.bury_of_others(id, address, open, burying) {
            Ok(()) => None,
            Err(_) => later,
        }
    }

    /// A dead letter of a stream's is on the disk, or cannot be.
    pub(in crate::messages) fn buried(&mut self, burying: Burying, is_kept: bool) -> (u32, String) {
        let Burying { ack, program, tries, why } = burying;
        let end = if is_kept { End::Dead } else { End::Again { delay_ms: tells::delay_ms(tries) } };
        self.hosts.order(Order::Settle { program, ack, end });
        (tries, why)
    }
}
