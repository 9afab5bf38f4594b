//! `hob log --http`: the requests of sites, from their access logs.

mod condition;
mod lines;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use hob_core::http::access::{Access, Combined};
use hob_os::start::Start;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::super::serve::{access, sites};
use crate::failure::Failure;
use crate::output::{out, out_json};
use crate::say;
use crate::show::clock::{Clock, moment};
use crate::show::sites::requests;
use crate::show::style::Look;
use condition::Condition;
use lines::{Followed, Logged};

/// How often a log that is followed is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// What is asked of requests alone.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Requests {
    /// The requests of sites instead, from their access logs
    #[arg(long, conflicts_with_all = ["program", "cold", "here"])]
    pub(super) http: bool,
    /// Go on with requests as they end, or with lines as they come
    #[arg(short, long, requires = "other")]
    pub(super) follow: bool,
    /// Only requests like that: `status>=500`, `total>200ms and path~/shop`; may be given more
    /// than once
    #[arg(long = "where", value_name = "CONDITION", requires = "http")]
    conditions: Vec<String>,
    /// How they are printed [default: text]
    #[arg(long, value_name = "FORMAT", requires = "http", conflicts_with = "json")]
    format: Option<Form>,
    /// Only requests of the site of this directory; with --daemon, the log of the site at this port
    #[arg(long, value_name = "SITE", requires = "other")]
    pub(super) site: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Text,
    Json,
    Combined,
}

/// What is asked of requests and of calls alike.
#[derive(Debug, Clone, Copy)]
pub(super) struct Selection {
    pub(super) count: usize,
    pub(super) failed: bool,
    pub(super) slower_us: Option<u64>,
    pub(super) since: Option<Timestamp>,
    pub(super) json: bool,
}

/// Which lines are asked for.
struct Chosen {
    condition: Condition,
    selection: Selection,
}

impl Chosen {
    fn takes(&self, logged: &Logged) -> bool {
        let since = self.selection.since;
        if since.is_some_and(|since| moment(logged.time()).is_none_or(|at| at < since)) {
            return false;
        }
        match logged {
            Logged::Request(access, _) => {
                let has_failed = access.status >= 500 || access.failure.is_some();
                (!self.selection.failed || has_failed) && self.condition.takes(access)
            }
            // Whether they were such requests is not known.
            Logged::Missing(..) => true,
        }
    }
}

/// Prints requests, the newest last.
pub(super) fn run(start: &Start, asked: &Requests, selection: Selection) -> Result<(), Failure> {
    let mut condition = Condition::default();
    for text in &asked.conditions {
        condition.add(text).map_err(|why| Failure::usage(format!("--where: {why}")))?;
    }
    selection.slower_us.inspect(|us| condition.add_slower(*us));
    let form = asked.format.unwrap_or(if selection.json { Form::Json } else { Form::Text });
    let chosen = Chosen { condition, selection };
    // The first line makes the file.
    sites::flush(start);
    let logs = logs(asked)?;
    // What ends while the newest are read is among what follows.
    let mut followed: Vec<_> = logs.iter().map(|log| Followed::new(log.clone(), false)).collect();
    let newest = newest(&logs, &chosen)?;
    if newest.is_empty() && !asked.follow && form == Form::Text {
        return out(if logs.is_empty() {
            "no requests are logged yet: `hob serve DIR` serves a site\n"
        } else {
            "no request that is kept is such a one: `hob log --http` lists the newest\n"
        });
    }
    let (look, zone) = (Look::of_stdout(), TimeZone::system());
    let print = |lines: &[Logged]| {
        let clock = Clock::now();
        let texts = lines.iter().map(|logged| text(logged, form, (&clock, &look, &zone)));
        let texts: String = texts.collect();
        if form == Form::Json { out_json(&texts) } else { out(&texts) }
    };
    print(&newest)?;
    if !asked.follow {
        return Ok(());
    }
    loop {
        // sleeps: a file has no mark that another process has written to it but by watching it.
        std::thread::sleep(LOOK);
        for log in self::logs(asked)? {
            if !followed.iter().any(|known| known.path() == log) {
                followed.push(Followed::new(log, true));
            }
        }
        let (mut come, mut strange) = (Vec::new(), 0);
        for each in &mut followed {
            let (lines, more) = each.come();
            come.extend(lines.into_iter().filter(|line| chosen.takes(line)));
            strange += more;
        }
        come.sort_by(|a, b| a.time().cmp(b.time()));
        tell(strange);
        if !come.is_empty() {
            print(&come)?;
        }
    }
}

/// The logs that are asked for.
fn logs(asked: &Requests) -> Result<Vec<PathBuf>, Failure> {
    let Some(folder) = access::folder() else {
        return Err(Failure::new(
            "no access log is kept: neither XDG_STATE_HOME nor HOME is set to an absolute path",
        ));
    };
    if let Some(site) = &asked.site {
        let root = std::fs::canonicalize(site)
            .map_err(|error| Failure::new(format!("{}: {error}", site.display())))?;
        let log = access::of_site(&folder, &root);
        if !log.exists() {
            return Err(Failure::new(format!(
                "no access log is kept of {}: `hob serve {0}` serves it",
                site.display()
            )));
        }
        return Ok(vec![log]);
    }
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut logs: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "ndjson"))
        .collect();
    logs.sort();
    Ok(logs)
}

/// The newest lines of all logs, the oldest first.
fn newest(logs: &[PathBuf], chosen: &Chosen) -> Result<Vec<Logged>, Failure> {
    let (mut all, mut strange) = (Vec::new(), 0);
    let count = chosen.selection.count;
    for log in logs {
        let mut left = count;
        // What was put away before it, if it does not have enough.
        for path in [log.clone(), hob_http::LogFile::older(log)] {
            if left == 0 {
                break;
            }
            match lines::newest(&path, left, |logged| chosen.takes(logged)) {
                Ok((found, more)) => {
                    left -= found.len();
                    strange += more;
                    all.extend(found);
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(Failure::new(format!("{}: {error}", path.display())));
                }
            }
        }
    }
    tell(strange);
    // Lines of one log keep their order where the wall clock did not move.
    all.reverse();
    all.sort_by(|a, b| a.time().cmp(b.time()));
    all.drain(..all.len().saturating_sub(count));
    Ok(all)
}

fn tell(strange: u64) {
    if strange > 0 {
        let line = if strange == 1 { "line is" } else { "lines are" };
        say::line(format!("{strange} {line} none of an access log, and left out").as_bytes());
    }
}

fn text(logged: &Logged, form: Form, (clock, look, zone): (&Clock, &Look, &TimeZone)) -> String {
    match (form, logged) {
        (Form::Json, logged) => format!("{}\n", logged.line()),
        (Form::Text, Logged::Request(access, _)) => requests::line(access, clock, look),
        (Form::Combined, Logged::Request(access, _)) => combined(access, zone),
        (Form::Text, Logged::Missing(missing, _)) => requests::missing(missing.dropped, look),
        (Form::Combined, Logged::Missing(missing, _)) => {
            format!("# {} lines were dropped here\n", missing.dropped)
        }
    }
}

fn combined(access: &Access, zone: &TimeZone) -> String {
    let at = moment(&access.time).map(|at| at.to_zoned(zone.clone()));
    let at = at
        .map_or_else(|| access.time.clone(), |at| at.strftime("%d/%b/%Y:%H:%M:%S %z").to_string());
    let combined = Combined {
        at: &at,
        client: &access.client,
        method: access.method.as_bytes(),
        target: access.target.as_bytes(),
        protocol: &access.protocol,
        status: access.status,
        bytes: access.bytes,
        referer: access.referer.as_bytes(),
        agent: access.agent.as_bytes(),
    };
    combined.line()
}
