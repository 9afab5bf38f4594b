//! Dead letters for a person: the list, one more try, the end. A request is
//! `{"verb": "dead", "do": "list" | "retry" | "drop"}`, of the last two with `"id"`; without it
//! all are meant. It is answered when the outbox's thread has done it. `"do": "elsewhere"` lists those
//! of other hosts, and another host may ask for those of this one.

pub mod alone;
mod hosts;

use std::collections::HashMap;

use hob_core::requests::dead::{Changed, Dead, Elsewhere, Letter, SCHEMA};
use hob_core::status::MessagesPart;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::messages::Messages;
use crate::outbox::{DeadLetter, MessageId, Which};
use crate::recorder::format;

use crate::messages::address::destination;

/// How much of a frame a list takes. A letter is far smaller than the rest.
const LIST_BYTES_MAX: usize = 768 << 10;

/// Who waits for the outbox's word, by the token of what it was asked.
#[derive(Debug, Default)]
pub(super) struct Asked {
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

impl Asked {
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
}

impl Messages {
    pub(super) fn listed(&mut self, token: u64, letters: Result<Vec<DeadLetter>, String>) {
        let Some(wait) = self.tells.asked.waiting.remove(&token) else { return };
        match (wait.reply, letters) {
            (Reply::Here(reply), Ok(letters)) => _ = reply.send(list(letters, wait.total)),
            (Reply::Here(reply), Err(why)) => _ = reply.send(json!({ "error": why })),
            (Reply::There(to), Ok(letters)) => self.say_letters(to, letters),
            // Who asks sees that this host has some and does not say which.
            (Reply::There(_), Err(_)) => {}
        }
    }

    /// What the status says of tells.
    pub(crate) fn told(&self) -> MessagesPart {
        let queue = self.tells.queue();
        let (held, why) = queue.held();
        let (is_open, outbox_why) = self.tells.outbox().standing();
        MessagesPart {
            waiting: queue.len() as u64 + self.tells.outbox().ending(),
            held: held as u64,
            held_why: why.map(str::to_owned),
            dead: self.tells.outbox().depth().2,
            outbox_owner: is_open.then(std::process::id),
            outbox_why,
        }
    }

    pub(crate) fn dead_letters(&mut self, request: &Value, reply: oneshot::Sender<Value>) {
        if request.get("do").and_then(Value::as_str) == Some("elsewhere") {
            self.ask_letters(reply);
            return;
        }
        let id = request.get("id").and_then(Value::as_str);
        let Some(which) = which(id) else {
            let unknown = id.into_iter().map(str::to_owned).collect();
            let _ = reply.send(value(&Changed { schema: SCHEMA.to_owned(), changed: 0, unknown }));
            return;
        };
        let tells = &mut self.tells;
        tells.asked.next += 1;
        let token = tells.asked.next;
        let (outbox, total) = (tells.outbox(), tells.outbox().depth().2);
        let sent = match request.get("do").and_then(Value::as_str) {
            Some("list") => outbox.list_dead(token).map_err(|error| error.to_string()),
            Some("retry") => outbox.retry_dead(token, which).map_err(|error| error.to_string()),
            Some("drop") => outbox.drop_dead(token, which).map_err(|error| error.to_string()),
            Some(_) | None => Err("dead: `do` is list, retry or drop".to_owned()),
        };
        match sent {
            Ok(()) => {
                let wait = Wait { reply: Reply::Here(reply), total, id: id.map(str::to_owned) };
                tells.asked.waiting.insert(token, wait);
            }
            Err(error) => _ = reply.send(json!({ "error": error })),
        }
    }
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
