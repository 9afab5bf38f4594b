//! Sessions: the processes that keep what is evaluated in them, and who is in which.
//!
//! ```text
//!   fronts/repl ──wanted, began, ended, left──▶ Sessions ──▶ hob-core (when one starts and ends)
//!        │                                        │ start, end, reap
//!        └───────── bytes, past the loop ─────────┴──▶ process ── its socket, its log
//! ```
//! Invariants: a process has a channel to this daemon, and ends with it; the loop never waits for
//! one; bytes of a dialogue do not pass the loop; an eval that ended has one receipt.

mod process;
mod receipt;

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_core::ids::Time;
use hob_core::log::Category;
use hob_core::sessions::{ClientId, Effect, Event, Limits, Refusal, SessionId, View, Why};
use hob_os::clock;
use hob_wire::exit::{Exit, ExitCode};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::inputs::{InSession, Input, Refused, SessionEvent, Wanted};
use crate::recorder::Recorder;
use process::Process;

/// A client that is in a session, or waits for one.
#[derive(Debug)]
struct Client {
    pid: u32,
    name: String,
    /// Until it is let in.
    wanted: Option<Box<Wanted>>,
    session: Option<SessionId>,
    over: Option<oneshot::Sender<String>>,
    /// Whether its session was started for it, until the receipt of its first eval says so.
    fresh: bool,
}

/// Sessions that were killed, and who waits for their end.
#[derive(Debug)]
struct Killing {
    ids: Vec<SessionId>,
    names: Vec<String>,
    reply: oneshot::Sender<Value>,
}

/// All about sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    core: hob_core::sessions::Sessions,
    limits: Limits,
    processes: BTreeMap<SessionId, Process>,
    clients: HashMap<ClientId, Client>,
    kills: Vec<Killing>,
    directory: PathBuf,
    recorder: Arc<Recorder>,
    owner: mpsc::Sender<Input>,
}

impl Sessions {
    /// None yet. What a daemon that was killed has left of its own is removed.
    pub(crate) fn new(
        directory: &Path,
        limits: Limits,
        recorder: Arc<Recorder>,
        owner: mpsc::Sender<Input>,
    ) -> Sessions {
        process::tidy(directory);
        Sessions {
            core: hob_core::sessions::Sessions::new(limits),
            limits,
            processes: BTreeMap::new(),
            clients: HashMap::new(),
            kills: Vec::new(),
            directory: directory.to_owned(),
            recorder,
            owner,
        }
    }

    /// Whether there is no session.
    pub(crate) fn is_empty(&self) -> bool {
        self.core.is_empty() && self.processes.is_empty()
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.core.next_deadline()
    }

    /// The processes, for memory readings.
    pub(crate) fn pids(&self) -> Vec<(SessionId, u32)> {
        self.processes.iter().map(|(id, process)| (*id, process.pid)).collect()
    }

    /// A client did something.
    pub(crate) fn client(&mut self, id: ClientId, event: SessionEvent) {
        match event {
            SessionEvent::Wanted(wanted) => self.wanted(id, wanted),
            SessionEvent::Began => {
                if let Some(session) = self.session_of(id) {
                    self.tell(Event::Began(session));
                }
            }
            SessionEvent::Ended(done) => {
                let Some(session) = self.session_of(id) else { return };
                self.leave_receipt(id, session, done);
                self.tell(Event::Ended(session));
            }
            SessionEvent::Left => {
                self.clients.remove(&id);
                self.tell(Event::Left(id));
            }
        }
    }

    fn session_of(&self, id: ClientId) -> Option<SessionId> {
        self.clients.get(&id)?.session
    }

    fn wanted(&mut self, id: ClientId, wanted: Box<Wanted>) {
        let name = String::from_utf8_lossy(&wanted.open.name).into_owned();
        if !is_name(&name) {
            let text = format!(
                "{name}: no name of a session: it has 1 to 64 letters, digits, `.`, `_` or `-`"
            );
            let _ = wanted.reply.send(Err(Refused { code: ExitCode::Usage as u8, text }));
            return;
        }
        let libraries = Some(&wanted.open.libraries).filter(|libraries| !libraries.is_empty());
        let libraries = libraries.map(|libraries| {
            let mut hasher = DefaultHasher::new();
            (libraries, &wanted.open.language).hash(&mut hasher);
            hasher.finish()
        });
        let start = wanted.open.start;
        let client = Client {
            pid: wanted.pid,
            name: name.clone(),
            wanted: Some(wanted),
            session: None,
            over: None,
            fresh: false,
        };
        self.clients.insert(id, client);
        self.tell(Event::Wanted { client: id, name: &name, libraries, start });
    }

    /// A session's process takes connections now.
    pub(crate) fn ready(&mut self, id: SessionId, serves: Vec<u8>) {
        if let Some(process) = self.processes.get_mut(&id) {
            hob_os::debug!(Category::Sessions, "session {} is ready, pid {}", id.0, process.pid);
            process.serves = serves;
            self.tell(Event::Ready(id));
        }
    }

    /// Memory was read, in KiB.
    pub(crate) fn memory(&mut self, readings: Vec<(SessionId, u64)>) {
        for (id, kib) in readings {
            self.tell(Event::Memory(id, kib));
        }
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self) {
        self.tell(Event::Tick);
    }

    /// Each session is to end.
    pub(crate) fn stop(&mut self) {
        self.tell(Event::Stop);
    }

    /// Ends sessions by name, and tells which there were once they have ended.
    pub(crate) fn kill(&mut self, name: Option<&str>, reply: oneshot::Sender<Value>) {
        let named = |view: &View<'_>| name.is_none_or(|name| view.name == name);
        let ending = self.core.views().filter(named).map(|view| (view.id, view.name.to_owned()));
        let (ids, names): (Vec<SessionId>, Vec<String>) = ending.unzip();
        self.tell(Event::Kill(name));
        self.kills.push(Killing { ids, names, reply });
        self.answer_kills();
    }

    fn answer_kills(&mut self) {
        let there = |id: &SessionId| self.processes.contains_key(id);
        for killing in self.kills.extract_if(.., |killing| !killing.ids.iter().any(there)) {
            // Who asked may have left.
            let _ = killing.reply.send(json!({ "killed": killing.names }));
        }
    }

    /// What `hob session list` shows.
    pub(crate) fn list(&self) -> Value {
        let now = Time(clock::now_ns());
        let all = self.core.views().map(|view| {
            let process = self.processes.get(&view.id);
            json!({
                "name": view.name,
                "state": view.state,
                "pid": process.map_or(0, |process| process.pid),
                "language": process.map_or("", |process| process.language),
                "serves": process.map(|process| String::from_utf8_lossy(&process.serves)),
                "directory": process.map(|process| process.place.display().to_string()),
                "clients": view.clients,
                "evals": view.evals,
                "memory_kib": view.kib,
                "age_s": now.us_since(view.since) / 1_000_000,
                "unused_s": now.us_since(view.used) / 1_000_000,
            })
        });
        json!({
            "schema": "hob.sessions/1",
            "memory_limit_kib": self.limits.memory_kib,
            "idle_limit_s": self.limits.idle_us / 1_000_000,
            "sessions": all.collect::<Vec<_>>(),
        })
    }

    /// Looks which processes have ended.
    pub(crate) fn reap(&mut self) {
        let ended: Vec<(SessionId, Exit)> = self
            .processes
            .iter()
            .filter_map(|(id, process)| process.ended().map(|exit| (*id, exit)))
            .collect();
        for (id, exit) in ended {
            hob_os::debug!(Category::Sessions, "session {} ended: {exit:?}", id.0);
            if let Some(process) = self.processes.get_mut(&id) {
                process.end = Some(exit);
            }
            self.tell(Event::Gone(id));
            self.processes.remove(&id);
        }
        self.answer_kills();
    }

    /// Tells the core what happened, and does what it says.
    fn tell(&mut self, event: Event<'_>) {
        let now = Time(clock::now_ns());
        let mut effects = Vec::new();
        self.core.handle(now, event, &mut effects);
        for effect in effects {
            self.perform(effect);
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Start(id, client) => {
                if let Err(text) = self.start(id, client) {
                    self.refuse(client, Refused { code: ExitCode::NotExecutable as u8, text });
                    self.tell(Event::Gone(id));
                }
            }
            Effect::Join(client, id, fresh) => self.join(client, id, fresh),
            Effect::Refuse(client, why) => {
                let refused = self.why_refused(client, why);
                self.refuse(client, refused);
            }
            Effect::Terminate(id, _) => {
                if let Some(process) = self.processes.get(&id) {
                    process.signal(rustix::process::Signal::TERM);
                }
            }
            Effect::Kill(id) => {
                if let Some(process) = self.processes.get(&id) {
                    process.signal(rustix::process::Signal::KILL);
                }
            }
            Effect::Tell(client, why) => self.tell_over(client, why),
        }
    }

    fn start(&mut self, id: SessionId, client: ClientId) -> Result<(), String> {
        let wanted = self.clients.get(&client).and_then(|client| client.wanted.as_ref());
        let wanted = wanted.ok_or("its client has left")?;
        if let Some(what) = &wanted.differs {
            return Err(what.clone());
        }
        let process = Process::start(id, wanted, &self.directory, &self.owner)?;
        self.processes.insert(id, process);
        Ok(())
    }

    fn join(&mut self, client: ClientId, id: SessionId, fresh: bool) {
        let Some(process) = self.processes.get(&id) else { return };
        let Some(known) = self.clients.get_mut(&client) else { return };
        let Some(wanted) = known.wanted.take() else { return };
        let (over, receiver) = oneshot::channel();
        let joined = InSession {
            socket: process.socket.clone(),
            pid: process.pid,
            fresh,
            serves: process.serves.clone(),
            cloned: Arc::clone(&process.cloned),
            over: receiver,
        };
        (known.session, known.over, known.fresh) = (Some(id), Some(over), fresh);
        // A client that has left says so by itself.
        let _ = wanted.reply.send(Ok(joined));
    }

    fn refuse(&mut self, client: ClientId, refused: Refused) {
        hob_os::debug!(Category::Sessions, "a client is refused: {}", refused.text);
        let wanted = self.clients.remove(&client).and_then(|known| known.wanted);
        if let Some(wanted) = wanted {
            let _ = wanted.reply.send(Err(refused));
        }
    }

    fn why_refused(&self, client: ClientId, why: Refusal) -> Refused {
        let name = self.clients.get(&client).map_or("", |known| known.name.as_str());
        let (code, text) = match why {
            Refusal::NoSession => (
                ExitCode::NotFound,
                format!("{name}: there is no such session; `hob session list` lists them"),
            ),
            Refusal::OtherLibraries => (
                ExitCode::Usage,
                format!(
                    "{name}: the session has other libraries; leave --cp out to use it as it is, \
                     name another with -S, or end it with `hob session kill {name}`"
                ),
            ),
            Refusal::Ending => {
                (ExitCode::Lost, format!("{name}: the session is ending; run this again"))
            }
            Refusal::TooMany => (
                ExitCode::Lost,
                format!(
                    "{name}: not started: there are {} sessions; end one with `hob session kill NAME`",
                    self.limits.most
                ),
            ),
            Refusal::Stopping => {
                (ExitCode::Lost, format!("{name}: not started: the daemon stops; run this again"))
            }
        };
        Refused { code: code as u8, text }
    }

    fn tell_over(&mut self, client: ClientId, why: Why) {
        let Some(known) = self.clients.get_mut(&client) else { return };
        let process = known.session.and_then(|id| self.processes.get(&id)).or_else(|| {
            // It waited for the session to begin.
            self.processes.values().find(|process| process.name == known.name)
        });
        let name = &known.name;
        let text = match why {
            Why::Idle => format!("{name}: the session was idle, and has ended"),
            Why::Memory => format!(
                "{name}: the session took more than {} MiB, and was ended; \
                 HOB_SESSION_MEMORY_MB raises the limit",
                self.limits.memory_kib / 1024
            ),
            Why::Killed => format!("{name}: `hob session kill` ended the session"),
            Why::Stopped => format!("{name}: the daemon stopped, and the session with it"),
            Why::NotReady => format!(
                "{name}: the session was not ready after {} s, and was ended",
                self.limits.start_us / 1_000_000
            ),
            Why::Left => process.map_or_else(
                || format!("{name}: the session's process has ended"),
                |process| process.last_words(name),
            ),
        };
        if let Some(over) = known.over.take() {
            let _ = over.send(text);
            known.session = None;
        } else {
            self.refuse(client, Refused { code: ExitCode::NotExecutable as u8, text });
        }
    }
}

/// Whether a session may be called so.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=64).contains(&name.len()) && name != "all" && name.bytes().all(plain)
}
