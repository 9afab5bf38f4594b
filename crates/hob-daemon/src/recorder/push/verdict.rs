//! What a collector's answer to a batch means, by the protocol of OTLP over HTTP.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use serde::Deserialize;

use super::format;

/// What a collector may ask us to wait at most. One that asks for more is asked again then.
const AFTER_MAX: Duration = Duration::from_secs(600);

/// What was answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status of HTTP.
    pub status: u16,
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
    /// The body, up to a bound.
    pub body: Vec<u8>,
}

/// What becomes of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The collector has it.
    Taken {
        /// Spans that it did not keep.
        rejected_spans: u64,
        /// Why, or what else it has to say.
        why: Option<String>,
    },
    /// It takes it neither now nor later.
    Refused(String),
    /// It may take it later.
    Again {
        /// Why not now.
        why: String,
        /// When, if it says so.
        after: Option<Duration>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    partial_success: Option<PartialSuccess>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartialSuccess {
    #[serde(default)]
    rejected_spans: Number,
    #[serde(default)]
    error_message: String,
}

/// A number of 64 bits, which JSON of protobuf has as a string, and which is read either way.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Text(String),
    Plain(u64),
}

impl Default for Number {
    fn default() -> Number {
        Number::Plain(0)
    }
}

/// What this answer, or its absence, means at this moment.
pub(super) fn of(answered: Result<Answer, String>, now: Timestamp) -> Verdict {
    let answer = match answered {
        Ok(answer) => answer,
        Err(why) => return Verdict::Again { why, after: None },
    };
    match answer.status {
        200..=299 => taken(&answer.body),
        status @ (429 | 502 | 503 | 504) => Verdict::Again {
            why: format!("it answered {status}"),
            after: answer.retry_after.and_then(|text| after(&text, now)),
        },
        status => Verdict::Refused(format!("it answered {status}, and the batch was dropped")),
    }
}

fn taken(body: &[u8]) -> Verdict {
    let body = serde_json::from_slice::<Body>(body).ok();
    let Some(PartialSuccess { rejected_spans, error_message }) =
        body.and_then(|body| body.partial_success)
    else {
        return Verdict::Taken { rejected_spans: 0, why: None };
    };
    let rejected_spans = match rejected_spans {
        Number::Plain(number) => number,
        Number::Text(text) => text.parse().unwrap_or(0),
    };
    let mut why = error_message;
    format::clip(&mut why);
    Verdict::Taken { rejected_spans, why: (!why.is_empty()).then_some(why) }
}

/// `Retry-After`: seconds, or a date.
fn after(text: &str, now: Timestamp) -> Option<Duration> {
    let seconds = text.trim().parse::<u64>().ok();
    let until = || {
        let at = rfc2822::parse(text.trim()).ok()?.timestamp();
        Some(u64::try_from(at.as_second().saturating_sub(now.as_second())).unwrap_or(0))
    };
    let seconds = seconds.or_else(until)?;
    Some(Duration::from_secs(seconds).min(AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-28T02:00:00Z".parse().unwrap()
    }

    fn answer(status: u16, retry_after: Option<&str>, body: &str) -> Verdict {
        let retry_after = retry_after.map(str::to_owned);
        of(Ok(Answer { status, retry_after, body: body.as_bytes().to_vec() }), now())
    }

    fn taken(rejected_spans: u64, why: Option<&str>) -> Verdict {
        Verdict::Taken { rejected_spans, why: why.map(str::to_owned) }
    }

    #[test]
    fn a_batch_is_posted_again_only_where_that_may_help() {
        let again = |verdict| matches!(verdict, Verdict::Again { after: None, .. });
        for status in [429, 502, 503, 504] {
            assert!(again(answer(status, None, "")), "{status}");
        }
        assert!(again(of(Err("cannot connect".to_owned()), now())));
        for status in [100, 301, 307, 400, 401, 404, 413, 500, 501] {
            let refused = answer(status, Some("5"), "");
            assert!(matches!(refused, Verdict::Refused(why) if why.contains(&status.to_string())));
        }
        assert_eq!(answer(200, None, "{}"), taken(0, None));
        assert_eq!(answer(202, None, "no JSON"), taken(0, None));
    }

    #[test]
    fn what_a_collector_did_not_keep_is_counted_however_it_writes_numbers() {
        let says = |rejected: &str| {
            format!(
                r#"{{"partialSuccess":{{"rejectedSpans":{rejected},"errorMessage":"too old"}}}}"#
            )
        };
        assert_eq!(answer(200, None, &says("\"3\"")), taken(3, Some("too old")));
        assert_eq!(answer(200, None, &says("4")), taken(4, Some("too old")));
        assert_eq!(answer(200, None, &says("\"many\"")), taken(0, Some("too old")));
        assert_eq!(answer(200, None, &says("-1")), taken(0, None));
        assert_eq!(answer(200, None, r#"{"partialSuccess":{}}"#), taken(0, None));
        let long = says("\"1\"").replace("too old", &"ü".repeat(100_000));
        let Verdict::Taken { why: Some(why), .. } = answer(200, None, &long) else { panic!() };
        assert!(why.len() <= format::TEXT_BYTES_MAX);
    }

    #[test]
    fn it_waits_as_long_as_it_is_asked_to_within_a_bound() {
        let after = |text| {
            let Verdict::Again { after, .. } = answer(429, Some(text), "") else {
                panic!("{text}")
            };
            after.map(|after| after.as_secs())
        };
        assert_eq!(after("7"), Some(7));
        assert_eq!(after("0"), Some(0));
        assert_eq!(after("Sat, 28 Nov 2026 02:00:30 GMT"), Some(30));
        assert_eq!(after("Sat, 28 Nov 2026 01:00:00 GMT"), Some(0));
        assert_eq!(after("99999999999999"), Some(600));
        for odd in ["-5", "soon", "", "1e9"] {
            assert_eq!(after(odd), None, "{odd}");
        }
    }
}
