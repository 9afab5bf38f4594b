//! A question put: to a program, or to an address.

use std::sync::Arc;
use std::time::Duration;

use hob_core::log::Category;
use hob_core::requests::{RAN_LATE, WAITED};
use hob_core::rights::{Allowed, Verb, Verdict};
use hob_os::clock;
use hob_wire::message::{Judged, Protocol, Reason, Traced};
use serde_json::Value;

use super::{At, Question};
use crate::client::Asked;
use crate::link::passed::Times;
use crate::link::{App, Ask, Link, Outcome};
use crate::log;

/// Microseconds that a question has for its program to be loaded.
pub(super) const LOAD_US_MAX: u64 = 10_000_000;

/// Bytes of an address's answer that are read: its status is what counts.
const BODY_MAX: usize = 64 * 1024;

/// Puts a question, and tells the log what was answered: not who asks, which may be a secret.
pub(super) async fn ask(at: &At, link: &Link, question: &Question, within: Duration) -> Verdict {
    let verdict = put(at, link, question, within).await;
    let by = match at {
        At::Program([app, _]) => app.name().to_owned(),
        At::Url(url, _) => url.origin.authority(),
    };
    let says = match &verdict {
        Verdict::Yes => "yes",
        Verdict::No => "no",
        Verdict::All(_) => "all that the user may",
        Verdict::Failed => "nothing that is an answer",
    };
    hob_os::debug!(Category::Rights, "{by} says {says}");
    verdict
}

async fn put(at: &At, link: &Link, question: &Question, within: Duration) -> Verdict {
    match at {
        At::Program(apps) => match told(apps, link, question).await {
            Outcome::Answered(payload) => read(&payload).unwrap_or_else(|what| {
                log::say(&format!("rights: {}: {what}", apps[0].name()));
                Verdict::Failed
            }),
            Outcome::Failed(reason, text) => {
                log::say(&format!("rights: {}: {}: {text}", apps[0].name(), reason.code()));
                Verdict::Failed
            }
            Outcome::Begun(_) => Verdict::Failed,
        },
        At::Url(url, client) => {
            let asked = Asked {
                method: "GET".to_owned(),
                url: url.clone(),
                headers: question.headers.clone(),
                body: Vec::new(),
            };
            match client.ask(&asked, within, BODY_MAX).await {
                Ok(answer) if (200..300).contains(&answer.status) => Verdict::Yes,
                Ok(answer) if matches!(answer.status, 401 | 403) => Verdict::No,
                Ok(answer) => {
                    log::say(&format!(
                        "rights: {url} answered {}, which is neither yes nor no",
                        answer.status
                    ));
                    Verdict::Failed
                }
                Err(error) => {
                    log::say(&format!("rights: {url}: {error}"));
                    Verdict::Failed
                }
            }
        }
    }
}

/// What becomes of a question to a program. One that had no worker all its time is put once more,
/// with the time of a load beside it: a wait says nothing of how long the program's answers take.
async fn told(apps: &[Arc<App>; 2], link: &Link, question: &Question) -> Outcome {
    let [app, loading] = apps;
    let first = put_once(app, link, question).await;
    let has_waited = matches!(&first, Outcome::Failed(Reason::TimedOut, text)
        if text.ends_with(WAITED) || text.ends_with(RAN_LATE));
    if has_waited { put_once(loading, link, question).await } else { first }
}

async fn put_once(app: &Arc<App>, link: &Link, question: &Question) -> Outcome {
    let now_ns = clock::now_ns();
    let times = Times {
        protocol: Protocol::Nothing,
        head_ns: 0,
        begun_ns: now_ns,
        judged_ns: 0,
        judged: Judged::Not,
        now_ns,
        trace: Traced::default(),
    };
    let ask = Ask { app, key: "", payload: &question.payload, file: None, hints: None };
    let (outcome, _passing) = link.ask(ask, times).await;
    outcome
}

/// What a program has answered: `true`, `false`, or all that this user may do.
fn read(payload: &[u8]) -> Result<Verdict, &'static str> {
    const WRONG: &str = "its answer is neither true, false nor {\"allow\":[\"read:PROJECT\"]}";
    let value: Value = serde_json::from_slice(payload).map_err(|_| WRONG)?;
    match value {
        Value::Bool(true) => Ok(Verdict::Yes),
        Value::Bool(false) => Ok(Verdict::No),
        Value::Object(mut fields) if fields.len() == 1 => {
            let Some(Value::Array(list)) = fields.remove("allow") else { return Err(WRONG) };
            let all: Option<Vec<Allowed>> = list.iter().map(allowed).collect();
            all.map(Verdict::All).ok_or(WRONG)
        }
        Value::Object(_) | Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(WRONG)
        }
    }
}

/// `VERB:PROJECT`, of which each may be `*`.
fn allowed(entry: &Value) -> Option<Allowed> {
    let (verb, what) = entry.as_str()?.split_once(':')?;
    let verb = match verb {
        "*" => None,
        "read" => Some(Verb::Read),
        "write" => Some(Verb::Write),
        _ => return None,
    };
    let what = match what {
        "" => return None,
        "*" => None,
        what => Some(what.as_bytes().to_vec()),
    };
    Some(Allowed { verb, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_what_it_says_or_none() {
        assert_eq!(read(b"true"), Ok(Verdict::Yes));
        assert_eq!(read(b" false\n"), Ok(Verdict::No));
        let all = vec![
            Allowed { verb: Some(Verb::Read), what: None },
            Allowed { verb: None, what: Some(b"a:b".to_vec()) },
        ];
        assert_eq!(read(br#"{"allow":["read:*","*:a:b"]}"#), Ok(Verdict::All(all)));
        assert_eq!(read(br#"{"allow":[]}"#), Ok(Verdict::All(Vec::new())));
        for wrong in [
            "",
            "yes",
            "1",
            "null",
            "\"true\"",
            "[true]",
            "true false",
            "{}",
            r#"{"allow":true}"#,
            r#"{"allow":["read"]}"#,
            r#"{"allow":["admin:*"]}"#,
            r#"{"allow":["read:"]}"#,
            r#"{"allow":["read:*"],"x":1}"#,
            "{\"allow\":[\"read:*\"",
        ] {
            assert!(read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
