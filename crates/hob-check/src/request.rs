//! One request of a check: sent as its profile, answered, and judged.

use std::collections::BTreeMap;

use hob_http::client::{Answer, Asked, Client, Origin, Url};
use serde_json::Value;

use super::answer::{Seen, Values};
use super::expect::Expect;
use super::plan::{Check, Plan, Profile, Request, What};
use super::sample::{Sample, body_faults};
use super::secrets::Secrets;

/// So much of a body is read; what is longer is a fault of its own.
pub(crate) const BODY_MAX: usize = 8 << 20;
/// A profile's cookies: more than browsers keep of one site.
const COOKIES_MAX: usize = 200;

/// What a profile has of the answers before.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept {
    cookies: Cookies,
    pub(crate) values: Values,
}

/// The cookies of a profile. They go to the origin that set them, and to no other.
#[derive(Debug, Clone, Default)]
struct Cookies {
    by_name: BTreeMap<String, Cookie>,
}

#[derive(Debug, Clone)]
struct Cookie {
    origin: Origin,
    value: String,
    path: String,
    secure: bool,
}

impl Cookies {
    /// Takes what an answer sets, and forgets what it takes back.
    fn take(&mut self, answer: &Answer, origin: &Origin, plan: &Plan) {
        let set = answer.headers.iter().filter(|(name, _)| name == "set-cookie");
        for (_, line) in set {
            let line = String::from_utf8_lossy(line);
            let mut parts = line.split(';');
            let Some((name, value)) = parts.next().and_then(|first| first.split_once('=')) else {
                continue;
            };
            let (name, value) = (name.trim(), value.trim());
            let mut cookie = Cookie {
                origin: origin.clone(),
                value: value.to_owned(),
                path: "/".to_owned(),
                secure: false,
            };
            let mut ended = false;
            for part in parts {
                let (key, value) = part.split_once('=').unwrap_or((part, ""));
                match key.trim().to_ascii_lowercase().as_str() {
                    "path" if value.trim().starts_with('/') => {
                        value.trim().clone_into(&mut cookie.path);
                    }
                    "secure" => cookie.secure = true,
                    "max-age" => ended = value.trim().parse::<i64>().is_ok_and(|age| age <= 0),
                    _ => {}
                }
            }
            if ended {
                self.by_name.remove(name);
            } else if self.by_name.len() < COOKIES_MAX {
                plan.secrets.hide(value, &format!("[cookie {name}]"));
                self.by_name.insert(name.to_owned(), cookie);
            }
        }
    }

    /// The header's value for this address.
    fn header(&self, url: &Url) -> Option<String> {
        let goes = |cookie: &Cookie| {
            let (path, under) = (url.path(), cookie.path.trim_end_matches('/'));
            let below = path
                .strip_prefix(under)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            let goes = below && cookie.origin == url.origin;
            goes && (!cookie.secure || url.origin.is_secure() || url.origin.is_loopback())
        };
        let all = self.by_name.iter().filter(|(_, cookie)| goes(cookie));
        let all: Vec<_> = all.map(|(name, cookie)| format!("{name}={}", cookie.value)).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// Sends a request, follows it as far as the check says, and judges the answer.
pub(crate) async fn sample(
    client: &Client,
    plan: &Plan,
    check: &Check,
    request: &Request,
    profile: usize,
    kept: &mut Kept,
) -> Sample {
    let who = &plan.profiles[profile];
    let home = home(plan, request);
    let mut asked = Asked {
        method: request.method.to_owned(),
        url: request.url.clone(),
        headers: Vec::new(),
        body: request.body.clone(),
    };
    let begun = std::time::Instant::now();
    let mut redirects = request.redirects;
    let answer = loop {
        asked.headers = headers(plan, who, request, &asked, &kept.cookies);
        let left = check.timeout.saturating_sub(begun.elapsed());
        match client.ask(&asked, left, BODY_MAX).await {
            Ok(answer) => {
                if asked.url.origin == *home {
                    kept.cookies.take(&answer, home, plan);
                }
                if redirects == 0 || !(300..400).contains(&answer.status) || answer.status == 304 {
                    break answer;
                }
                let Some(to) = answer.header("location") else { break answer };
                redirects -= 1;
                match moved(&asked, answer.status, &to) {
                    Ok(next) => asked = next,
                    Err(error) => return Sample::failed(begun.elapsed(), error),
                }
            }
            Err(error) => {
                // The time that is told is the check's, not what a redirect has left of it.
                let late = matches!(error, hob_http::client::Error::Late(_));
                let text = if late {
                    format!("no whole answer within {:?}", check.timeout)
                } else {
                    error.to_string()
                };
                return Sample::failed(begun.elapsed(), text);
            }
        }
    };
    let took = begun.elapsed();
    let mut faults = faults(plan, check, request, profile, &answer);
    let seen = Seen { answer: &answer, url: &asked.url, took_ms: millis(took) };
    faults.extend(captured(plan, check, profile, seen, &mut kept.values));
    // Of an answer with another status than it should have, nothing else is said.
    if request.accepts(profile, seen.answer.status.into()) {
        faults.extend(check.asserts.iter().filter_map(|one| one.fault(seen, &plan.secrets)));
    }
    Sample { took, code: Some(answer.status.into()), faults, left: answer.body }
}

fn millis(took: std::time::Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// Takes what the check takes of its answer; returns what is not there. Of an answer with another
/// status than it should have, nothing is missed.
fn captured(
    plan: &Plan,
    check: &Check,
    profile: usize,
    seen: Seen<'_>,
    values: &mut Values,
) -> Vec<String> {
    let mut missed = Vec::new();
    for capture in &check.captures {
        match capture.take(seen) {
            Ok(value) => {
                if capture.is_secret {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    plan.secrets.hide(&text, &format!("[{}]", capture.name));
                }
                values.insert(capture.name.clone(), value);
            }
            Err(why) => missed.push(why),
        }
    }
    if let What::Request(request) = &check.what
        && !request.accepts(profile, seen.answer.status.into())
    {
        missed.clear();
    }
    missed
}

/// What the secrets of a profile belong to: the base, or the one place that is asked without one.
fn home<'a>(plan: &'a Plan, request: &'a Request) -> &'a Origin {
    plan.base.as_ref().map_or(&request.url.origin, |base| &base.origin)
}

fn headers(
    plan: &Plan,
    who: &Profile,
    request: &Request,
    asked: &Asked,
    cookies: &Cookies,
) -> Vec<(String, String)> {
    let mut headers = vec![("Accept".to_owned(), "*/*".to_owned())];
    headers.push(("User-Agent".to_owned(), concat!("hob/", env!("CARGO_PKG_VERSION")).to_owned()));
    let set = |headers: &mut Vec<(String, String)>, more: &[(String, String)]| {
        for (name, value) in more {
            headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
            headers.push((name.clone(), value.clone()));
        }
    };
    let mut cookies = cookies.header(&asked.url);
    if asked.url.origin == *home(plan, request) {
        set(&mut headers, &who.headers);
        if let Some(value) = &cookies {
            headers.push(("Cookie".to_owned(), value.clone()));
        }
    }
    // A header of the check may be a token: it goes where the check itself goes, and no further.
    if asked.url.origin == request.url.origin {
        set(&mut headers, &request.headers);
        let own = headers.iter_mut().find(|(name, _)| name == "Cookie");
        // As Hurl has it, the cookies of an entry go beside those of the answers before it.
        if let (true, Some((_, own)), Some(kept)) = (plan.keeps_cookies, own, cookies.take())
            && *own != kept
        {
            *own = format!("{kept}; {own}");
        }
    }
    headers
}

/// The request after a redirect: as browsers do it, a POST becomes a GET unless it is 307 or 308.
fn moved(asked: &Asked, status: u16, to: &str) -> Result<Asked, String> {
    let origin = &asked.url.origin;
    let to = if to.contains("://") {
        to.to_owned()
    } else if let Some(rest) = to.strip_prefix("//") {
        format!("http://{rest}")
    } else if to.starts_with('/') {
        format!("{origin}{to}")
    } else {
        let folder = asked.url.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{origin}{folder}/{to}")
    };
    let url = Url::parse(&to).map_err(|error| format!("cannot follow the redirect: {error}"))?;
    let mut next = Asked { url, ..asked.clone() };
    let keeps = matches!(status, 307 | 308) || matches!(asked.method.as_str(), "GET" | "HEAD");
    if !keeps {
        next.method = "GET".to_owned();
        next.body = Vec::new();
    } else if next.url.origin != *origin {
        // A body may be a password.
        next.body = Vec::new();
    }
    Ok(next)
}

fn faults(
    plan: &Plan,
    check: &Check,
    request: &Request,
    profile: usize,
    answer: &Answer,
) -> Vec<String> {
    let mut faults = Vec::new();
    let status = i64::from(answer.status);
    let want = &request.status[profile];
    if !request.accepts(profile, status) {
        let all: Vec<_> = want.iter().map(i64::to_string).collect();
        let words = if want.is_empty() { "200 to 299".to_owned() } else { all.join(" or ") };
        faults.push(format!("status {status}, expected {words}"));
    }
    for (name, test) in &check.header {
        faults.extend(header_fault(name, test, answer, &plan.secrets));
    }
    if answer.cut {
        faults.push(format!("the body is longer than {} MiB", BODY_MAX >> 20));
    }
    let encoding = answer.header("content-encoding").filter(|name| name != "identity");
    // What a profile is refused that others get has no content of theirs.
    if !request.is_refused(profile) {
        faults.extend(body_faults(check, &answer.body, encoding.as_deref(), &plan.secrets));
    }
    faults
}

fn header_fault(name: &str, test: &Expect, answer: &Answer, secrets: &Secrets) -> Option<String> {
    let values = answer.headers.iter().filter(|(key, _)| key == name);
    let values: Vec<Value> =
        values.map(|(_, value)| String::from_utf8_lossy(value).into_owned().into()).collect();
    let values: Vec<&Value> = values.iter().collect();
    test.fault(&values, secrets).map(|fault| format!("header {name} {fault}"))
}

/// The request as a line for curl, its secrets as variables of a shell.
pub fn curl(plan: &Plan, request: &Request, profile: usize, has_cookies: bool) -> String {
    let who = &plan.profiles[profile];
    let home = plan.base.as_ref().map_or(&request.url.origin, |base| &base.origin);
    let quoted = |text: &str| format!("'{}'", plan.secrets.redacted(text).replace('\'', "'\\''"));
    let mut words = vec!["curl -sS -i".to_owned()];
    match request.method {
        "GET" => {}
        "HEAD" => words.push("-I".to_owned()),
        method => words.push(format!("-X {method}")),
    }
    if request.url.origin == *home {
        words.extend(who.curl.iter().cloned());
        if has_cookies {
            words.push("-H \"Cookie: $COOKIES\"".to_owned());
        }
    }
    for (name, value) in &request.headers {
        words.push(format!("-H {}", quoted(&format!("{name}: {value}"))));
    }
    if !request.body.is_empty() {
        words.push(format!("--data-raw {}", quoted(&String::from_utf8_lossy(&request.body))));
    }
    words.push(quoted(&request.url.to_string()));
    words.join(" ")
}
