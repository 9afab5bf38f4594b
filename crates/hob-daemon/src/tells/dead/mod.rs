//! Dead letters for a person: the list, one more try, the end. A request is
//! `{"verb": "dead", "do": "list" | "retry" | "drop"}`, of the last two with `"id"`; without it
//! all are meant. It is answered when the outbox's thread has done it. `"do": "elsewhere"` lists those
//! of other hosts, and another host may ask for those of this one.

pub mod alone;

use std::collections::HashMap;
use std::path::Path;

use hob_core::requests::dead::{
    Changed, Dead, Elsewhere, Letter, OF_HOST_BYTES_MAX, OfHost, SCHEMA,
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::Tells;
use crate::handlers::address::destination;
use crate::hosts::Hosts;
use crate::outbox::{DeadLetter, MessageId, Which};
use crate::recorder::format;

/// Hosts that may wait for this one's list at one time; more hear nothing.
const ASKED_MAX: usize = 16;
/// How much of a frame a list takes. A letter is far smaller than the rest.
const LIST_BYTES_MAX: usize = 768 << 10;

/// Who waits for the outbox's word, by the token of what it was asked.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    waiting: HashMap<u64, Wait>,
    next: u64,
}

#[derive(Debug)]
struct Wait {
    reply: Reply,
    /// How many there were.
    total: u64,
    /// The one that was meant.
    id: Option<String>,
}

/// Where an answer goes. Whoever asked may have left.
#[derive(Debug)]
enum Reply {
    Here(oneshot::Sender<Value>),
    /// To another host, by its address.
    There(String),
}

impl Waiting {
    pub(super) fn settled(&mut self, token: u64, changed: Result<u64, String>) {
        let Some(wait) = self.waiting.remove(&token) else { return };
        let answer = match changed {
            Ok(changed) => {
                let unknown = wait.id.into_iter().filter(|_| changed == 0).collect();
                value(&Changed { schema: SCHEMA.to_owned(), changed, unknown })
            }
            Err(why) => json!({ "error": why }),
        };
        if let Reply::Here(reply) = wait.reply {
            let _ = reply.send(answer);
        }
    }

    pub(super) fn listed(
        &mut self,
        hosts: &Hosts,
        token: u64,
        letters: Result<Vec<DeadLetter>, String>,
    ) {
        let Some(wait) = self.waiting.remove(&token) else { return };
        match (wait.reply, letters) {
            (Reply::Here(reply), Ok(letters)) => _ = reply.send(list(letters, wait.total)),
            (Reply::Here(reply), Err(why)) => _ = reply.send(json!({ "error": why })),
            (Reply::There(to), Ok(letters)) => hosts.say_letters(to, offered(hosts, letters)),
            // Who asks sees that this host has some and does not say which.
            (Reply::There(_), Err(_)) => {}
        }
    }

    fn wait(&mut self, token: u64, wait: Wait) {
        self.waiting.insert(token, wait);
    }

    fn token(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl Tells {
    /// Answers a request for dead letters; see above.
    pub(crate) fn dead_letters(
        &mut self,
        hosts: &mut Hosts,
        request: &Value,
        reply: oneshot::Sender<Value>,
    ) {
        let what = request.get("do").and_then(Value::as_str);
        if what == Some("elsewhere") {
            // Without a connection there are none.
            if let Some(reply) = hosts.wait_for_letters(reply) {
                let _ = reply.send(value(&Elsewhere::default()));
            }
            return;
        }
        let id = request.get("id").and_then(Value::as_str);
        let Some(which) = which(id) else {
            let unknown = id.into_iter().map(str::to_owned).collect();
            let _ = reply.send(value(&Changed { schema: SCHEMA.to_owned(), changed: 0, unknown }));
            return;
        };
        let token = self.dead.token();
        let (outbox, total) = (self.outbox(), self.outbox().depth().2);
        let sent = match what {
            Some("list") => outbox.list_dead(token).map_err(|error| error.to_string()),
            Some("retry") => outbox.retry_dead(token, which).map_err(|error| error.to_string()),
            Some("drop") => outbox.drop_dead(token, which).map_err(|error| error.to_string()),
            Some(_) | None => Err("dead: `do` is list, retry or drop".to_owned()),
        };
        match sent {
            Ok(()) => {
                let id = id.map(str::to_owned);
                self.dead.wait(token, Wait { reply: Reply::Here(reply), total, id });
            }
            Err(error) => _ = reply.send(json!({ "error": error })),
        }
    }

    /// Another host asks for those of this one.
    pub(crate) fn letters_wanted(&mut self, to: String) {
        let waiting = self.dead.waiting.values();
        if waiting.filter(|wait| matches!(wait.reply, Reply::There(_))).count() >= ASKED_MAX {
            return;
        }
        let (token, total) = (self.dead.token(), self.outbox.depth().2);
        if self.outbox.list_dead(token).is_ok() {
            self.dead.wait(token, Wait { reply: Reply::There(to), total, id: None });
        }
    }
}

/// Those of programs that this host offers: what else runs here is nobody's business there.
fn offered(hosts: &Hosts, letters: Vec<DeadLetter>) -> OfHost {
    let is_offered = |program: &str, directory: &str| {
        hosts.offered_from(program).is_some_and(|from| from == Path::new(directory))
    };
    let all = letters.into_iter().map(shown);
    let offered: Vec<_> = all.filter(|one| is_offered(&one.program, &one.directory)).collect();
    let total = offered.len() as u64;
    OfHost { host: String::new(), total, letters: first(offered.into_iter(), OF_HOST_BYTES_MAX) }
}

/// Which letters a request means; `None`: its id is none.
pub(super) fn which(id: Option<&str>) -> Option<Which> {
    match id.map(MessageId::parse) {
        None => Some(Which::All),
        Some(known) => known.map(Which::One),
    }
}

pub(super) fn list(letters: Vec<DeadLetter>, total: u64) -> Value {
    let total = total.max(letters.len() as u64);
    let letters = first(letters.into_iter().map(shown), LIST_BYTES_MAX);
    let elsewhere = Elsewhere::default();
    value(&Dead { schema: SCHEMA.to_owned(), total, letters, elsewhere })
}

/// As many as so many bytes have room for.
fn first(letters: impl Iterator<Item = Letter>, bytes_max: usize) -> Vec<Letter> {
    let mut bytes = 0;
    let fits = |letter: &Letter| {
        bytes += value(letter).to_string().len();
        bytes <= bytes_max
    };
    letters.take_while(fits).collect()
}

fn shown(letter: DeadLetter) -> Letter {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let message = &letter.message;
    let (directory, program) = destination(&message.program).unwrap_or_default();
    Letter {
        id: message.id.to_string(),
        program: text(program),
        directory: text(directory),
        key: message.key.as_deref().map(text),
        content_type: text(&message.content_type),
        bytes: message.payload.len() as u64,
        told_at: moment(message.created_ms),
        at: moment(letter.at_ms),
        tries: letter.tries,
        why: letter.why,
    }
}

fn moment(ms: u64) -> String {
    let at = i64::try_from(ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    format::moment(at.unwrap_or_default())
}

pub(super) fn value(what: &impl serde::Serialize) -> Value {
    serde_json::to_value(what).unwrap_or_else(|error| json!({ "error": error.to_string() }))
}
