//! The hooks front: callers that cannot run a hooks directory by themselves, such as a JVM.
//!
//! A connection is: `hello`, then any number of sets and their cancellations, without waiting for
//! each other. Its end cancels what it has open. The caller's context is read from the process at
//! the other end, once for a connection: its hooks are started by this daemon and have the
//! daemon's own, so that a caller with another one is refused, by name.

use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

use hob_core::hooks::Suffix;
use hob_core::plan::{Cgroup, Context};
use hob_hooks::Signals;
use hob_hooks::{Isolation, Set, Variables};
use hob_os::process::limits;
use hob_os::surroundings::{self, priority};
use hob_wire::call::Priority;
use hob_wire::frame::Kind;
use hob_wire::hooks::RunSet;
use hob_wire::message::{Failure, Numbered, Reason};
use hob_wire::strings::Strings;
use rustix::fs::{Mode, OFlags};

use crate::around::{Around, Seen};
use crate::channel::{self, Frame, Outlet, Reader, Stream};
use crate::fronts::Front;
use crate::sets::{CallerId, Sets, Wanted};

/// One caller.
struct Caller<'a> {
    id: CallerId,
    pid: u32,
    outlet: Outlet,
    sets: &'a Sets,
    /// What of its context its hooks could not have.
    differs: Option<String>,
    /// The environment of its newest set; mostly the next one has the same.
    env: (Strings, Variables),
}

/// Hears a caller to its end. What breaks a rule ends the connection, as its leaving would.
pub(crate) async fn serve(
    first: Frame,
    mut reader: Reader,
    stream: Arc<Stream>,
    seen: Seen,
    front: &Front,
) {
    let mut caller = Caller {
        id: CallerId(front.recorder.next_call()),
        pid: seen.pid(),
        outlet: Outlet::new(stream),
        sets: &front.sets,
        differs: differs(&front.around, &seen),
        env: (Strings::new(), Variables::default()),
    };
    let mut frame = first;
    while caller.hear(&frame) {
        match reader.next().await {
            Ok(Some(next)) => frame = next,
            Ok(None) | Err(_) => break,
        }
    }
    front.sets.caller_left(caller.id);
}

impl Caller<'_> {
    /// Takes a frame; `false` if it breaks a rule.
    fn hear(&mut self, frame: &Frame) -> bool {
        if frame.kind == Kind::Cancel {
            let Ok(Numbered { id }) = Numbered::decode(&frame.payload) else { return false };
            self.sets.cancel(self.id, id);
            return true;
        }
        if frame.kind != Kind::RunSet {
            return false;
        }
        let Ok(run) = RunSet::decode(&frame.payload) else { return false };
        let number = run.set;
        if let Err((reason, text)) = self.begin(run) {
            let failure = Failure { id: number, reason, text: text.as_bytes() };
            self.outlet.send(channel::encode(Kind::Failure, 0, |out| failure.encode(out)));
        }
        true
    }

    fn begin(&mut self, run: RunSet) -> Result<(), (Reason, String)> {
        if let Some(what) = &self.differs {
            return Err((Reason::Context, what.clone()));
        }
        let malformed = |text: String| (Reason::Malformed, text);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let within =
            rustix::fs::open(run.cwd.as_slice(), flags, Mode::empty()).map_err(|error| {
                let (cwd, error) = (String::from_utf8_lossy(&run.cwd), std::io::Error::from(error));
                malformed(format!("{cwd}: no working directory: {error}"))
            })?;
        let variables = self.variables(run.env, &run.params).map_err(malformed)?;
        let mut set = Set::new(run.directory, &variables);
        set.target = run.target.into();
        set.within = Some(Arc::new(within));
        set.umask = Some(run.umask);
        // What the daemon ignores is its own business.
        set.signals = Signals::Default;
        set.kill_after = time(run.kill_after_ms);
        set.warn_after = time(run.warn_after_ms);
        if let Some(ignored) = run.ignored {
            set.ignored = ignored.iter().filter_map(Suffix::new).collect();
        }
        if run.spawn {
            set.isolation = Isolation::Spawn;
        }
        self.sets.begin(Wanted {
            caller: self.id,
            number: run.set,
            pid: self.pid,
            outlet: self.outlet.clone(),
            set,
            remaining: time(run.remaining_ms),
        })
    }

    /// The environment with the parameters over it.
    fn variables(&mut self, env: Strings, params: &Strings) -> Result<Variables, String> {
        if self.env.0 != env {
            let entries = env.iter().filter_map(|entry| CString::new(entry).ok());
            self.env = (Strings::new(), Variables::inherit(entries));
            self.env.0 = env;
        }
        let mut variables = self.env.1.clone();
        for entry in params.iter() {
            let at = entry.iter().position(|byte| *byte == b'=').unwrap_or(0);
            let value = entry.get(at + 1..).unwrap_or(&[]);
            variables.set(&entry[..at], value).map_err(|error| {
                format!("parameter {}: {error}", String::from_utf8_lossy(entry))
            })?;
        }
        Ok(variables)
    }
}

/// 0 is none.
fn time(ms: u64) -> Option<Duration> {
    (ms > 0).then(|| Duration::from_millis(ms))
}

/// What of a caller's context that would not have which this daemon starts for it, and what to do.
pub(crate) fn differs(around: &Around, seen: &Seen) -> Option<String> {
    let priority::Priority { nice, io, policy, slack_ns } = priority::of(seen.pid());
    if !around.is_like(&Priority { nice, io, policy, oom: seen.oom, slack_ns }) {
        // The daemon has taken back what its first caller had lowered.
        let what = "the caller has another priority than the daemon: call without `nice`, `ionice`, \
                    `chrt` or a changed `oom_score_adj`";
        return Some(what.to_owned());
    }
    let what = elsewhere(around, seen)?;
    Some(format!("{what}; start the daemon from where the caller runs (`hob stop`)"))
}

/// What of it the daemon would have too if it was started from there.
fn elsewhere(around: &Around, seen: &Seen) -> Option<String> {
    let pid = seen.pid();
    let context = surroundings::context_of(pid).unwrap_or_default();
    if around.context(&context, seen) != Context::Equal {
        let what = "the caller has other groups, capabilities, namespaces or root than the daemon";
        return Some(what.to_owned());
    }
    if around.cgroup(seen) == Cgroup::Limited {
        return Some("the caller is in another control group than the daemon".to_owned());
    }
    let Some(theirs) = limits::of(pid) else {
        return Some("the caller's limits cannot be read".to_owned());
    };
    let mut pairs = limits::NAMES.iter().zip(theirs.into_iter().zip(limits::own()));
    let (name, (theirs, own)) = pairs.find(|(_, (theirs, own))| theirs != own)?;
    let shown = |(soft, hard): (u64, u64)| {
        let one = |value: u64| match value {
            u64::MAX => "unlimited".to_owned(),
            value => value.to_string(),
        };
        format!("{} of {}", one(soft), one(hard))
    };
    let (theirs, own) = (shown(theirs), shown(own));
    Some(format!("the caller's limit of {name} is {theirs}, the daemon's {own}"))
}
