//! Posts receipts to the collector that the user's configuration names.
//!
//! Invariants: plain text is sent to this machine only; an answer is waited for within a bound and
//! read up to one; no redirect is followed, so that headers go to no other.

use std::time::Duration;

use hob_daemon::recorder::push::{Answer, Post, Settings};
use hob_http::client::Url;
use hob_http::client::posts::Posts;

/// Where a collector of OTLP takes traces, if its address has no path.
const PATH: &str = "/v1/traces";
/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(10);
/// How much of an answer is read.
const BODY_MAX: usize = 64 * 1024;

/// The address that receipts are posted to, or why none are.
pub(crate) fn address(settings: &Settings) -> Result<Url, String> {
    let url = Url::parse(&settings.url).map_err(|why| format!("otlp: {why}"))?;
    if !url.origin.is_secure() && !url.origin.is_loopback() {
        let to = url.origin.authority();
        return Err(format!(
            "otlp = \"http://{to}\": plain text is sent to this machine only; use https://"
        ));
    }
    let target = if url.target == "/" { PATH.to_owned() } else { url.target };
    Ok(Url { target, ..url })
}

/// Makes what posts receipts.
pub(crate) fn open(settings: &Settings) -> Result<Post, String> {
    let url = address(settings)?;
    let mut headers = settings.headers.clone();
    headers.push(("content-type".to_owned(), "application/json".to_owned()));
    let posts = Posts::new(url, headers).map_err(|error| error.to_string())?;
    Ok(Box::new(move |body| {
        let answer = posts.post(body, WITHIN, BODY_MAX).map_err(|error| error.to_string())?;
        let retry_after = answer.header("retry-after");
        Ok(Answer { status: answer.status, retry_after, body: answer.body })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> Result<String, String> {
        let settings = Settings { url: url.to_owned(), headers: Vec::new() };
        address(&settings).map(|url| url.to_string())
    }

    #[test]
    fn plain_text_stays_on_this_machine_and_an_address_without_a_path_has_the_usual_one() {
        for (url, told) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://localhost:4318/", "http://localhost:4318/v1/traces"),
            ("http://[::1]:9/otlp?a=b", "http://[::1]:9/otlp?a=b"),
            ("https://otel.example", "https://otel.example/v1/traces"),
        ] {
            assert_eq!(of(url).unwrap(), told);
        }
        for url in [
            "http://10.0.0.1:4318",
            "http://127.0.0.1.example",
            "http://localhost.example",
            "https://user:hunter2@otel.example",
            "http://127.0.0.1@evil.example",
            "grpc://127.0.0.1",
            "127.0.0.1:4318",
        ] {
            let why = of(url).unwrap_err();
            assert!(why.starts_with("otlp") && !why.contains("hunter2"), "{url}: {why}");
        }
    }
}
