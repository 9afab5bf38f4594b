//! What is to be asked: the checks of a file, as the profiles that are left after the options, in
//! an order in which each comes after what it waits for.

use std::collections::BTreeMap;
use std::time::Duration;

use hob_core::hooks::glob::matches;
use hob_http::client::Url;
use hob_resolve::near::nearest;
use serde_json_path::JsonPath;
use toml::{Spanned, Value};

use super::Asked;
use super::answer::{Assert, Capture, Values};
use super::expect::{Expect, json};
use super::file::{self, File, Filled, Late};
use super::secrets::{Secrets, base64, percent};

/// Without a word of the file.
const JOBS: usize = 4;
const TIMEOUT: Duration = Duration::from_secs(30);
/// More at one time are an attack.
const JOBS_MAX: usize = 256;
const TIMES_MAX: usize = 10_000;
/// More checks than this are no file that a person wrote.
const CHECKS_MAX: usize = 200_000;
const REDIRECTS_MAX: usize = 20;
/// Who asks where a file names none.
const ANYBODY: &str = "anonymous";
/// Where a request goes as long as its address is not known; nothing is sent there.
const NOWHERE: &str = "http://not-known.invalid/";

/// A file, understood.
#[derive(Debug)]
pub struct Plan {
    /// Where paths begin.
    pub base: Option<Url>,
    /// How many are asked at one time.
    pub jobs: usize,
    /// Who asks.
    pub profiles: Vec<Profile>,
    /// What is asked.
    pub checks: Vec<Check>,
    /// In an order in which each cell comes after those that it waits for.
    pub cells: Vec<Cell>,
    /// What is never shown.
    pub secrets: Secrets,
    /// Whether the cookies of each answer go with what comes after it.
    pub(crate) keeps_cookies: bool,
}

/// Who asks.
#[derive(Debug)]
pub struct Profile {
    /// The name.
    pub name: String,
    /// Sent with each request to the base.
    pub(crate) headers: Vec<(String, String)>,
    /// The same as a person would type it for curl.
    pub(crate) curl: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    /// The check whose cookies go along.
    pub(crate) login: Option<usize>,
}

/// One check, as all profiles ask it.
#[derive(Debug)]
pub struct Check {
    /// The name.
    pub name: String,
    /// What it does.
    pub what: What,
    /// How long it may take.
    pub within: Option<Duration>,
    pub(crate) timeout: Duration,
    pub(crate) times: usize,
    pub(crate) json: Vec<(String, JsonPath, Expect)>,
    pub(crate) header: Vec<(String, Expect)>,
    pub(crate) contains: Vec<String>,
    pub(crate) captures: Vec<Capture>,
    pub(crate) asserts: Vec<Assert>,
    /// Set where it is not whole before the checks that it comes after are answered.
    pub(crate) late: Option<Late>,
    profiles: Vec<usize>,
    after: Vec<usize>,
}

impl Check {
    /// Whether all of it is known before anything is answered.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.late.is_none()
    }
}

/// What a check does.
#[derive(Debug)]
pub enum What {
    /// A request.
    Request(Request),
    /// A command.
    Run {
        /// Its words.
        words: Vec<String>,
        /// The exit codes that are right.
        exits: Vec<i64>,
    },
}

/// A request.
#[derive(Debug)]
pub struct Request {
    /// The method.
    pub method: &'static str,
    /// Where it goes.
    pub url: Url,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) redirects: usize,
    /// By profile; empty: any of 200 to 299.
    pub(crate) status: Vec<Vec<i64>>,
}

impl Request {
    /// Whether a profile should get such a status.
    pub(crate) fn accepts(&self, profile: usize, status: i64) -> bool {
        match &self.status[profile][..] {
            [] => (200..300).contains(&status),
            want => want.contains(&status),
        }
    }

    /// Whether a profile has to be refused what another one has to get.
    pub(crate) fn is_refused(&self, profile: usize) -> bool {
        let gets = |want: &Vec<i64>| want.is_empty() || want.iter().any(|code| *code / 100 == 2);
        !gets(&self.status[profile]) && self.status.iter().any(gets)
    }
}

/// A check as a profile.
#[derive(Debug)]
pub struct Cell {
    /// The place of the check.
    pub check: usize,
    /// The place of the profile.
    pub profile: usize,
    /// Cells that must have passed before.
    pub(crate) after: Vec<usize>,
}

impl Plan {
    /// Understands a file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn new(file: File, asked: &Asked) -> Result<Plan, String> {
        let secrets = Secrets::default();
        for (text, shown) in &file.hidden {
            secrets.hide(text, shown);
        }
        if file.check.is_empty() {
            return Err("holds no check: add one as [check.NAME]".to_owned());
        }
        if file.check.len() > CHECKS_MAX {
            return Err(format!("holds more than {CHECKS_MAX} checks"));
        }
        let given = asked.base.clone().or_else(|| std::env::var("HOB_CHECK_BASE").ok());
        let base = given.filter(|base| !base.is_empty()).or(file.base);
        let base = base.map(|base| secrets.value(&base));
        let base = base.map(|base| Url::parse(&base).map_err(|error| format!("base: {error}")));
        let base = base.transpose()?;
        if file.is_hurl {
            secrets.take_literally();
        }
        let jobs = bounded("jobs", asked.jobs.or(file.jobs), JOBS, JOBS_MAX)?;
        let times = asked.times.or(file.times);

        let mut named = in_order(file.profile);
        if named.is_empty() {
            named.push((ANYBODY.to_owned(), file::Profile::default()));
        }
        let checks = in_order(file.check);
        let names: Vec<String> = checks.iter().map(|(name, _)| name.clone()).collect();
        let who: Vec<String> = named.iter().map(|(name, _)| name.clone()).collect();
        let chosen = chosen(&names, &who, asked)?;

        let mut profiles = Vec::new();
        for (at, (name, profile)) in named.into_iter().enumerate() {
            // What is not asked as needs no secret.
            let secrets = if chosen.profiles[at] { &secrets } else { &Secrets::default() };
            profiles.push(Profile::new(name, profile, &names, secrets)?);
        }
        let needed = needed(&checks, &names, &profiles, &chosen)?;
        let within = file.within.map(|within| within.0);
        let timeout = file.timeout.map_or(TIMEOUT, |timeout| timeout.0);
        let shared = Shared { base: base.as_ref(), within, timeout, times };
        let mut understood = Vec::new();
        for (at, (name, check)) in checks.into_iter().enumerate() {
            let secrets = if needed[at] { &secrets } else { &Secrets::default() };
            let logs_in = |profile: &Profile| profile.login == Some(at);
            let logins = (0..profiles.len()).filter(|who| logs_in(&profiles[*who])).collect();
            let check = Check::new(&name, check, &shared, &names, &who, logins, secrets);
            understood.push(check.map_err(|error| format!("check `{name}`: {error}"))?);
        }
        let unset = secrets.unset();
        if !unset.is_empty() {
            return Err(format!("not set in the environment: {}", unset.join(", ")));
        }
        let order = order(&understood, &profiles)?;
        let cells = cells(&understood, &profiles, &order, &needed, &chosen);
        let keeps_cookies = file.is_hurl;
        Ok(Plan { base, jobs, profiles, checks: understood, cells, secrets, keeps_cookies })
    }

    /// A check with what was taken of the answers before it.
    ///
    /// # Errors
    /// With these values it is none.
    pub(crate) fn filled(&self, late: &Late, at: usize, values: &Values) -> Result<Check, String> {
        let Filled { check, hidden } = (late.0)(values)?;
        for (text, shown) in hidden {
            self.secrets.hide(&text, &shown);
        }
        let shared =
            Shared { base: self.base.as_ref(), within: None, timeout: TIMEOUT, times: None };
        let who: Vec<String> = self.profiles.iter().map(|profile| profile.name.clone()).collect();
        let name = &self.checks[at].name;
        Check::new(name, check, &shared, &[], &who, Vec::new(), &self.secrets)
    }

    /// The profile's login, if this check is not that one itself.
    pub fn login_of(&self, cell: &Cell) -> Option<usize> {
        self.profiles[cell.profile].login.filter(|login| *login != cell.check)
    }

    /// Whether a cell may be asked many times more than the file says: it only reads, or the file
    /// itself has it repeated.
    pub(crate) fn may_be_repeated(&self, at: usize) -> bool {
        let cell = &self.cells[at];
        let check = &self.checks[cell.check];
        let reads = match &check.what {
            What::Request(request) => matches!(request.method, "GET" | "HEAD" | "OPTIONS"),
            What::Run { .. } => false,
        };
        !self.is_login(cell) && (reads || check.times > 1)
    }

    /// Whether this cell is a profile's login.
    pub(crate) fn is_login(&self, cell: &Cell) -> bool {
        self.profiles[cell.profile].login == Some(cell.check)
    }
}

/// What the options leave.
struct Chosen {
    checks: Vec<bool>,
    profiles: Vec<bool>,
}

fn chosen(names: &[String], who: &[String], asked: &Asked) -> Result<Chosen, String> {
    for profile in &asked.profile {
        if !who.contains(profile) {
            return Err(format!("no profile `{profile}`{}", near(profile, who)));
        }
    }
    let only = |name: &String| {
        (asked.only.is_empty() || asked.only.iter().any(|glob| matches(glob, name)))
            && !asked.skip.iter().any(|glob| matches(glob, name))
    };
    let as_who = |name: &String| asked.profile.is_empty() || asked.profile.contains(name);
    Ok(Chosen {
        checks: names.iter().map(only).collect(),
        profiles: who.iter().map(as_who).collect(),
    })
}

/// The checks that are asked for, and those that they wait for.
fn needed(
    checks: &[(String, file::Check)],
    names: &[String],
    profiles: &[Profile],
    chosen: &Chosen,
) -> Result<Vec<bool>, String> {
    let mut needed = chosen.checks.clone();
    if needed.contains(&true) {
        for (profile, chosen) in profiles.iter().zip(&chosen.profiles) {
            if let (Some(login), true) = (profile.login, *chosen) {
                needed[login] = true;
            }
        }
    }
    let mut open: Vec<usize> = (0..checks.len()).filter(|at| needed[*at]).collect();
    while let Some(at) = open.pop() {
        for name in &checks[at].1.after {
            let before = position(names, name, "check")
                .map_err(|error| format!("check `{}`: after: {error}", checks[at].0))?;
            if !needed[before] {
                needed[before] = true;
                open.push(before);
            }
        }
    }
    Ok(needed)
}

/// The checks, each after those that it waits for.
fn order(checks: &[Check], profiles: &[Profile]) -> Result<Vec<usize>, String> {
    let waits_for = |(at, check): (usize, &Check)| {
        let logins = check.profiles.iter().filter_map(|profile| profiles[*profile].login);
        check.after.iter().copied().chain(logins.filter(|login| *login != at)).collect()
    };
    let waits: Vec<Vec<usize>> = checks.iter().enumerate().map(waits_for).collect();
    let mut left: Vec<usize> = waits.iter().map(Vec::len).collect();
    let mut waiters = vec![Vec::new(); checks.len()];
    for (at, before) in waits.iter().enumerate() {
        for before in before {
            waiters[*before].push(at);
        }
    }
    let mut order: Vec<usize> = (0..checks.len()).filter(|at| left[*at] == 0).collect();
    let mut next = 0;
    while let Some(at) = order.get(next).copied() {
        next += 1;
        for waiter in &waiters[at] {
            left[*waiter] -= 1;
            if left[*waiter] == 0 {
                order.push(*waiter);
            }
        }
    }
    if order.len() == checks.len() {
        return Ok(order);
    }
    // One that is left waits for one that is left: the way back meets itself.
    let mut path: Vec<usize> = Vec::new();
    let mut at = left.iter().position(|left| *left > 0).unwrap_or_default();
    while !path.contains(&at) {
        path.push(at);
        at = waits[at].iter().copied().find(|before| left[*before] > 0).unwrap_or(at);
    }
    let from = path.iter().position(|other| *other == at).unwrap_or_default();
    let mut names: Vec<_> =
        path[from..].iter().map(|at| format!("`{}`", checks[*at].name)).collect();
    names.push(format!("`{}`", checks[at].name));
    Err(format!("checks wait for one another: {}", names.join(" after ")))
}

fn cells(
    checks: &[Check],
    profiles: &[Profile],
    order: &[usize],
    needed: &[bool],
    chosen: &Chosen,
) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut at_check = vec![Vec::new(); checks.len()];
    for check in order.iter().copied().filter(|check| needed[*check]) {
        for profile in checks[check].profiles.iter().copied() {
            if !chosen.profiles[profile] {
                continue;
            }
            let login = profiles[profile].login.filter(|login| *login != check);
            let mut after = Vec::new();
            for before in checks[check].after.iter().copied().chain(login) {
                let all: &Vec<usize> = &at_check[before];
                let own = all.iter().copied().find(|cell| cells[*cell].profile == profile);
                match own {
                    Some(own) => after.push(own),
                    None => after.extend(all),
                }
            }
            at_check[check].push(cells.len());
            cells.push(Cell { check, profile, after });
        }
    }
    cells
}

impl Profile {
    fn new(
        name: String,
        profile: file::Profile,
        checks: &[String],
        secrets: &Secrets,
    ) -> Result<Profile, String> {
        let wrong = |error: String| format!("profile `{name}`: {error}");
        let mut headers: Vec<(String, String)> = Vec::new();
        let mut curl = Vec::new();
        if let Some(basic) = &profile.basic {
            let user = secrets.value(&basic.user);
            if user.contains(':') {
                return Err(wrong("a user's name holds no colon".to_owned()));
            }
            let word = base64(format!("{user}:{}", secrets.value(&basic.password)).as_bytes());
            secrets.hide(&word, "[user and password]");
            headers.push(("Authorization".to_owned(), format!("Basic {word}")));
            let shown = |text: &str| {
                text.strip_prefix("env:").map_or_else(|| text.to_owned(), |name| format!("${name}"))
            };
            // A password that stands in the file is one all the same.
            secrets.hide(&secrets.value(&basic.password), "[password]");
            let password = match basic.password.starts_with("env:") {
                true => shown(&basic.password),
                false => "[password]".to_owned(),
            };
            curl.push(format!("-u \"{}:{password}\"", shown(&basic.user)));
        }
        for (key, value) in &profile.headers {
            headers.push((key.clone(), secrets.value(value)));
            curl.push(header_for_curl(key, value));
        }
        let env = profile.env.iter().map(|(key, value)| (key.clone(), secrets.value(value)));
        let env = env.collect();
        let login = profile.login.as_ref().map(|login| position(checks, login, "check"));
        let login = login.transpose().map_err(|error| wrong(format!("login: {error}")))?;
        Ok(Profile { name, headers, curl, env, login })
    }
}

/// A header as curl's option; a secret as the shell's variable.
fn header_for_curl(key: &str, value: &str) -> String {
    match value.strip_prefix("env:") {
        Some(name) => format!("-H \"{key}: ${name}\""),
        None => format!("-H '{}'", format!("{key}: {value}").replace('\'', "'\\''")),
    }
}

/// What a file says for all its checks.
struct Shared<'a> {
    base: Option<&'a Url>,
    within: Option<Duration>,
    timeout: Duration,
    times: Option<usize>,
}

impl Check {
    fn new(
        name: &str,
        check: file::Check,
        shared: &Shared<'_>,
        names: &[String],
        who: &[String],
        logins: Vec<usize>,
        secrets: &Secrets,
    ) -> Result<Check, String> {
        let profiles = match &check.profiles {
            Some(profiles) if profiles.is_empty() => {
                return Err("profiles: none; leave the key out for all".to_owned());
            }
            Some(profiles) => {
                let found = profiles.iter().map(|name| position(who, name, "profile"));
                found.collect::<Result<_, _>>().map_err(|error| format!("profiles: {error}"))?
            }
            None if !logins.is_empty() => logins.clone(),
            None => (0..who.len()).collect(),
        };
        let after = check.after.iter().map(|name| position(names, name, "check"));
        let after = after.collect::<Result<_, _>>().map_err(|error| format!("after: {error}"))?;
        let what = what(&check, shared.base, who, secrets)?;
        let mut asserts = Vec::new();
        for (path, test) in &check.json {
            let read = JsonPath::parse(path).map_err(|error| format!("json `{path}`: {error}"))?;
            let test = Expect::read(test).map_err(|error| format!("json `{path}`: {error}"))?;
            asserts.push((path.clone(), read, test));
        }
        let mut header = Vec::new();
        for (key, test) in &check.header {
            let test = Expect::read(test).map_err(|error| format!("header `{key}`: {error}"))?;
            header.push((key.to_ascii_lowercase(), test));
        }
        let contains = match &check.contains {
            None => Vec::new(),
            Some(Value::String(text)) => vec![text.clone()],
            Some(value) => {
                let texts = value.as_array().map(|all| all.iter().map(|one| one.as_str()));
                let texts = texts.and_then(|all| all.collect::<Option<Vec<_>>>());
                let texts = texts.ok_or("contains: a text, or a list of texts")?;
                texts.into_iter().map(str::to_owned).collect()
            }
        };
        // Each login is done once: a user does not log in five times.
        let usual = if logins.is_empty() { shared.times } else { None };
        Ok(Check {
            name: name.to_owned(),
            what,
            within: check.within.map(|within| within.0).or(shared.within),
            timeout: check.timeout.map_or(shared.timeout, |timeout| timeout.0),
            times: bounded("times", check.times.or(usual), 1, TIMES_MAX)?,
            json: asserts,
            header,
            contains,
            captures: check.captures,
            asserts: check.asserts,
            late: check.late,
            profiles,
            after,
        })
    }
}

/// The one request or command of a check.
fn what(
    check: &file::Check,
    base: Option<&Url>,
    who: &[String],
    secrets: &Secrets,
) -> Result<What, String> {
    let methods = check.methods();
    let what = match (&methods[..], &check.run) {
        ([(method, url)], None) => {
            What::Request(Request::new(method, url, check, base, who, secrets)?)
        }
        ([], Some(words)) => {
            let only_requests = [
                ("status", check.status.is_some()),
                ("form", check.form.is_some()),
                ("body", check.body.is_some()),
                ("query", check.query.is_some()),
                ("headers", check.headers.is_some()),
                ("header", !check.header.is_empty()),
                ("redirects", check.redirects.is_some()),
            ];
            if let Some((key, _)) = only_requests.iter().find(|(_, given)| *given) {
                return Err(format!("`{key}` is for requests, not for a command"));
            }
            if words.is_empty() {
                return Err("run: no command".to_owned());
            }
            let words = words.iter().map(|word| secrets.value(word)).collect();
            let exits = check.exit.as_ref().map_or(Ok(vec![0]), |exit| numbers("exit", exit))?;
            What::Run { words, exits }
        }
        ([], None) => {
            return Err("does nothing: add `get = \"/path\"` or `run = [\"command\"]`".to_owned());
        }
        _ => return Err("does two things: one request, or one command".to_owned()),
    };
    if matches!(what, What::Request(_)) && check.exit.is_some() {
        return Err("`exit` is for commands; a request has a `status`".to_owned());
    }
    Ok(what)
}

impl Request {
    fn new(
        method: &'static str,
        url: &str,
        check: &file::Check,
        base: Option<&Url>,
        who: &[String],
        secrets: &Secrets,
    ) -> Result<Request, String> {
        let mut url = match address(&secrets.value(url), base) {
            // It is not known yet, and read again before it is asked.
            Err(_) if check.late.is_some() && url.contains("{{") => Url::parse(NOWHERE)?,
            url => url?,
        };
        for (key, value) in check.query.iter().flatten() {
            let joint = if url.target.contains('?') { '&' } else { '?' };
            url.target += &format!("{joint}{}={}", percent(key), percent(&secrets.value(value)));
        }
        let headers = check.headers.iter().flatten();
        let mut headers: Vec<(String, String)> =
            headers.map(|(key, value)| (key.clone(), secrets.value(value))).collect();
        let (body, kind) = body(check, secrets)?;
        let has = |name: &str| headers.iter().any(|(key, _)| key.eq_ignore_ascii_case(name));
        if let (Some(kind), false) = (kind, has("content-type")) {
            headers.push(("Content-Type".to_owned(), kind.to_owned()));
        }
        let redirects = check.redirects.unwrap_or(0);
        if redirects > REDIRECTS_MAX {
            return Err(format!("redirects: at most {REDIRECTS_MAX}"));
        }
        let status = match &check.status {
            None => vec![Vec::new(); who.len()],
            Some(Value::Table(by_profile)) => {
                for key in by_profile.keys() {
                    if key != "else" {
                        position(who, key, "profile")
                            .map_err(|error| format!("status: {error}"))?;
                    }
                }
                let other = by_profile.get("else");
                let of = |name: &String| match by_profile.get(name).or(other) {
                    Some(value) => numbers("status", value),
                    None => Ok(Vec::new()),
                };
                who.iter().map(of).collect::<Result<_, _>>()?
            }
            Some(value) => vec![numbers("status", value)?; who.len()],
        };
        if let Some(wrong) = status.iter().flatten().find(|code| !(100..1000).contains(*code)) {
            return Err(format!("status: {wrong} is none"));
        }
        Ok(Request { method, url, headers, body, redirects, status })
    }
}

/// The body, and its type.
fn body(check: &file::Check, secrets: &Secrets) -> Result<(Vec<u8>, Option<&'static str>), String> {
    match (&check.form, &check.body) {
        (Some(_), Some(_)) => Err("both `form` and `body`: one of them".to_owned()),
        (Some(form), None) => {
            let parts = form.iter();
            let parts = parts
                .map(|(key, value)| format!("{}={}", percent(key), percent(&secrets.value(value))));
            let parts: Vec<_> = parts.collect();
            Ok((parts.join("&").into_bytes(), Some("application/x-www-form-urlencoded")))
        }
        (None, Some(Value::String(text))) => Ok((secrets.value(text).into_bytes(), None)),
        (None, Some(value)) => {
            let body = with_secrets(json(value), secrets).to_string();
            Ok((body.into_bytes(), Some("application/json")))
        }
        (None, None) => Ok((Vec::new(), None)),
    }
}

fn with_secrets(value: serde_json::Value, secrets: &Secrets) -> serde_json::Value {
    use serde_json::Value as Json;
    match value {
        Json::String(text) => secrets.value(&text).into(),
        Json::Array(all) => all.into_iter().map(|one| with_secrets(one, secrets)).collect(),
        Json::Object(map) => {
            let map = map.into_iter().map(|(key, value)| (key, with_secrets(value, secrets)));
            Json::Object(map.collect())
        }
        plain @ (Json::Null | Json::Bool(_) | Json::Number(_)) => plain,
    }
}

/// An address, or a path below the base.
fn address(text: &str, base: Option<&Url>) -> Result<Url, String> {
    if text.contains("://") {
        return Url::parse(text);
    }
    let base = base.ok_or("a path needs a base: `base = \"http://…\"`, or --base")?;
    if !text.starts_with('/') {
        return Err(format!("a path begins with /, as in `/{text}`"));
    }
    Url::parse(&format!("{}{}{text}", base.origin, base.path().trim_end_matches('/')))
}

/// A number, or a list of them.
fn numbers(key: &str, value: &Value) -> Result<Vec<i64>, String> {
    let found = match (value.as_integer(), value.as_array()) {
        (Some(number), _) => Some(vec![number]),
        (None, Some(all)) => all.iter().map(Value::as_integer).collect(),
        (None, None) => None,
    };
    let found = found.filter(|all| !all.is_empty());
    found.ok_or_else(|| format!("{key}: a number, or a list of numbers"))
}

fn bounded(key: &str, said: Option<usize>, usual: usize, max: usize) -> Result<usize, String> {
    let number = said.unwrap_or(usual);
    if (1..=max).contains(&number) { Ok(number) } else { Err(format!("{key}: 1 to {max}")) }
}

/// In the order of the file.
fn in_order<V>(map: BTreeMap<Spanned<String>, V>) -> Vec<(String, V)> {
    let mut all: Vec<_> = map.into_iter().collect();
    all.sort_by_key(|(name, _)| name.span().start);
    all.into_iter().map(|(name, value)| (name.into_inner(), value)).collect()
}

fn position(all: &[String], name: &str, kind: &str) -> Result<usize, String> {
    let found = all.iter().position(|other| other == name);
    found.ok_or_else(|| format!("no {kind} `{name}`{}", near(name, all)))
}

fn near(name: &str, all: &[String]) -> String {
    let near = nearest(name, all.iter().map(String::as_str));
    near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}
