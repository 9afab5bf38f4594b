//! Asks and replies as messages of NATS. What comes from there is a stranger's: each field has a
//! bound, and what cannot be read is as if it were not there.

use async_nats::{HeaderMap, HeaderValue, Message, StatusCode};
use hob_core::hosts::reply::{Reply, code, reason};
use hob_core::hosts::tells::{Telling, Told};
use hob_core::hosts::{Claim, News, Published, Question, words};
use hob_core::http::paths;

/// What is left of an ask's time, in µs.
const WITHIN: &str = "Hob-Within";
/// Its sender's key.
const KEY: &str = "Hob-Key";
/// The hosts that it has come over.
const HOPS: &str = "Hob-Hops";
/// The trace that it belongs to, as the W3C has it.
const TRACE: &str = "traceparent";
/// Who asks: a host's name and its call's number.
const FROM: &str = "Hob-From";
/// A tell's id: its stream takes it once.
const MESSAGE_ID: &str = "Nats-Msg-Id";
/// What an asker knows of claims: `known`.
const CLAIM: &str = "Hob-Claim";
/// Who has taken it.
const TAKEN: &str = "Hob-Taken";
/// Who performed it.
const CALL: &str = "Hob-Call";
/// The time that was spent there, in µs.
const SPENT: &str = "Hob-Spent";
/// Why there is no answer, in one word.
const REASON: &str = "Hob-Reason";
const TYPE: &str = "Content-Type";
const ERROR: &str = "Nats-Service-Error";
const ERROR_CODE: &str = "Nats-Service-Error-Code";
const KNOWN: &str = "known";
/// Where the word comes that a taken ask is to be performed: `hob.go.CONNECTION.TICKET`.
pub(crate) const GO: &str = "hob.go.";
/// A longer header of a stranger's is not read.
const HEADER_CHARS_MAX: usize = 4096;

fn put(headers: &mut HeaderMap, name: &str, value: &str) {
    if let Ok(value) = value.parse::<HeaderValue>() {
        headers.insert(name, value);
    }
}

fn put_bytes(headers: &mut HeaderMap, name: &str, bytes: &[u8]) {
    if !bytes.is_empty() {
        put(headers, name, &words::encode(bytes));
    }
}

/// The header, where it is there once and not too long.
fn get<'a>(headers: Option<&'a HeaderMap>, name: &str) -> Option<&'a str> {
    let headers = headers?;
    let mut all = headers.get_all(name).map(HeaderValue::as_str);
    let value = all.next()?;
    (all.next().is_none() && value.len() <= HEADER_CHARS_MAX).then_some(value)
}

fn get_bytes(headers: Option<&HeaderMap>, name: &str) -> Vec<u8> {
    get(headers, name).map(|text| paths::decode(text.as_bytes())).unwrap_or_default()
}

/// A host's name and a number; empty for anything else.
fn call_of(headers: Option<&HeaderMap>, name: &str) -> String {
    let is_call = |text: &&str| {
        text.split_once('/').is_some_and(|(host, number)| {
            hob_core::hosts::is_host(host) && number.parse::<u64>().is_ok()
        })
    };
    get(headers, name).filter(is_call).unwrap_or_default().to_owned()
}

/// The headers of an ask.
pub(crate) fn ask(published: &Published, host: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    put(&mut headers, WITHIN, &published.within_us.to_string());
    put(&mut headers, HOPS, &published.trail.hops.to_string());
    if let Some(trace) = published.trail.trace {
        put(&mut headers, TRACE, &trace.header());
    }
    put(&mut headers, CLAIM, KNOWN);
    put(&mut headers, FROM, &format!("{host}/{}", published.attempt.call.0));
    put_bytes(&mut headers, KEY, &published.key);
    put_bytes(&mut headers, TYPE, &published.content_type);
    headers
}

/// The headers of a tell.
pub(crate) fn tell(telling: &Telling, host: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    put(&mut headers, MESSAGE_ID, &telling.id);
    put(&mut headers, FROM, &format!("{host}/0"));
    put_bytes(&mut headers, KEY, &telling.key);
    put_bytes(&mut headers, TYPE, &telling.content_type);
    headers
}

/// A tell that a stream gives.
pub(crate) fn told(message: Message, program: &str, ack: String, delivered: u32) -> Told {
    let headers = message.headers.as_ref();
    Told {
        program: program.to_owned(),
        id: get(headers, MESSAGE_ID).map(words::line).unwrap_or_default(),
        from: call_of(headers, FROM),
        key: get_bytes(headers, KEY),
        content_type: get_bytes(headers, TYPE),
        payload: message.payload.into(),
        ack,
        delivered,
    }
}

/// An ask that has come; `None`: it waits for no reply.
pub(crate) fn question(message: Message, program: &str, is_claim: bool) -> Option<Question> {
    let headers = message.headers.as_ref();
    let claim = match (is_claim, get(headers, CLAIM)) {
        (true, _) => Claim::Needed,
        (false, Some(KNOWN)) => Claim::Known,
        (false, _) => Claim::Unknown,
    };
    Some(Question {
        reply_to: message.reply.as_ref()?.to_string(),
        program: program.to_owned(),
        within: get(headers, WITHIN).map(str::to_owned),
        hops: get(headers, HOPS).map(str::to_owned),
        traceparent: get(headers, TRACE).map(str::to_owned),
        from: call_of(headers, FROM),
        claim,
        key: get_bytes(headers, KEY),
        content_type: get_bytes(headers, TYPE),
        payload: message.payload.into(),
    })
}

/// The headers and the payload of a reply.
pub(crate) fn answer(reply: &Reply) -> (HeaderMap, Vec<u8>) {
    let mut headers = HeaderMap::new();
    match reply {
        Reply::NoResponders => (headers, Vec::new()),
        Reply::Answer { by, spent_us, content_type, payload } => {
            put(&mut headers, CALL, by);
            put(&mut headers, SPENT, &spent_us.to_string());
            put_bytes(&mut headers, TYPE, content_type);
            (headers, payload.clone())
        }
        Reply::Failure { by, spent_us, reason, text } => {
            put(&mut headers, CALL, by);
            put(&mut headers, SPENT, &spent_us.to_string());
            put(&mut headers, ERROR_CODE, &code(*reason).to_string());
            put(&mut headers, REASON, reason.code());
            let line = words::line(text);
            put(&mut headers, ERROR, if line.is_empty() { reason.code() } else { &line });
            (headers, text.clone().into_bytes())
        }
    }
}

/// The headers of the word that a taken ask is to be performed.
pub(crate) fn go(within_us: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    put(&mut headers, WITHIN, &within_us.to_string());
    headers
}

/// What that word says; `None`: it is none.
pub(crate) fn went(message: &Message) -> Option<News> {
    let ticket = message.subject.rsplit('.').next()?.parse().ok()?;
    let reply_to = message.reply.as_ref().map(ToString::to_string);
    let within = get(message.headers.as_ref(), WITHIN).map(str::to_owned);
    Some(News::Went { ticket, reply_to, within })
}

/// The headers of what says that an ask is taken.
pub(crate) fn taken(host: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    put(&mut headers, TAKEN, host);
    headers
}

/// What has come to an ask.
pub(crate) enum Came {
    /// It is taken, and performed after a word to this address.
    Taken(String),
    /// It has its outcome.
    Reply(Reply),
}

/// What a reply says.
pub(crate) fn reply(message: Message) -> Came {
    let is_taken = get(message.headers.as_ref(), TAKEN).is_some();
    match message.reply.as_ref().map(|to| to.to_string()) {
        // Nobody makes this host send something to a subject that is none of hob's.
        Some(to) if is_taken && to.starts_with(GO) => Came::Taken(to),
        _ => Came::Reply(outcome(message)),
    }
}

fn outcome(message: Message) -> Reply {
    let headers = message.headers.as_ref();
    let is_empty = message.payload.is_empty();
    if message.status == Some(StatusCode::NO_RESPONDERS) && is_empty {
        return Reply::NoResponders;
    }
    let by = call_of(headers, CALL);
    let spent_us = get(headers, SPENT).and_then(|text| text.parse().ok()).unwrap_or(0);
    let failed = get(headers, ERROR_CODE);
    match failed {
        Some(code) => {
            let reason = reason(code, get(headers, REASON));
            let line = get(headers, ERROR).unwrap_or_default().to_owned();
            let text = match is_empty {
                true => line,
                false => String::from_utf8_lossy(&message.payload).into_owned(),
            };
            Reply::Failure { by, spent_us, reason, text }
        }
        None => {
            let content_type = get_bytes(headers, TYPE);
            Reply::Answer { by, spent_us, content_type, payload: message.payload.into() }
        }
    }
}
