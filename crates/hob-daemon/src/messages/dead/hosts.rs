//! Dead letters of other hosts, and of this host for others: those of its offered programs only, since
//! what else runs here is nobody's business there.

use std::path::Path;

use hob_core::hosts::Order;
use hob_core::requests::dead::{Elsewhere, OF_HOST_BYTES_MAX, OfHost};
use serde_json::Value;
use tokio::sync::oneshot;

use super::{Reply, Wait, first, shown, value};
use crate::messages::Messages;
use crate::outbox::DeadLetter;

/// Hosts that may wait for this one's list at one time; more hear nothing.
const ASKED_MAX: usize = 16;

impl Messages {
    /// Asks all hosts for theirs; without a connection there are none.
    pub(super) fn ask_letters(&mut self, reply: oneshot::Sender<Value>) {
        if let Some(reply) = self.wait_for_letters(reply) {
            let _ = reply.send(value(&Elsewhere::default()));
        }
    }

    /// Another host asks for those of this one.
    pub(in crate::messages) fn letters_wanted(&mut self, to: String) {
        let tells = &mut self.tells;
        let waiting = tells.asked.waiting.values();
        if waiting.filter(|wait| matches!(wait.reply, Reply::There(_))).count() >= ASKED_MAX {
            return;
        }
        tells.asked.next += 1;
        let token = tells.asked.next;
        let (outbox, total) = (tells.outbox(), tells.outbox().depth().2);
        if outbox.list_dead(token).is_ok() {
            let wait = Wait { reply: Reply::There(to), total, id: None };
            tells.asked.waiting.insert(token, wait);
        }
    }

    /// Says them.
    pub(super) fn say_letters(&mut self, to: String, letters: Vec<DeadLetter>) {
        let is_offered = |program: &str, directory: &str| {
            self.offered_from(program).is_some_and(|from| from == Path::new(directory))
        };
        let all = letters.into_iter().map(shown);
        let offered: Vec<_> = all.filter(|one| is_offered(&one.program, &one.directory)).collect();
        let total = offered.len() as u64;
        let letters = first(offered.into_iter(), OF_HOST_BYTES_MAX);
        let letters = Box::new(OfHost { host: self.host_name().to_owned(), total, letters });
        self.order_hosts(Order::SayLetters { to, letters });
    }
}
