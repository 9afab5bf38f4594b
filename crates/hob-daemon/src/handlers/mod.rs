//! Handlers: which programs messages can go to, and what is loaded of each.
//!
//! | file | does |
//! |---|---|
//! | `route` | from a sender's program to a pool: the configuration, its freshness, the interpreter |
//! | `loading` | what is loaded of a handler, and what becomes of loading it anew |
//! | `address` | what a kept message needs to find its program again |
//! | `reloads` | reloads that somebody waits for |
//!
//! Invariant: a lane's doorbell is the watch that its pool's freshness is judged by, and the lane is
//! recalled before that watch is read (`docs/why/lanes.md`).

pub(crate) mod address;
pub(crate) mod loading;
mod reloads;
pub(crate) mod route;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use hob_core::event::{Loaded as Became, Serves};
use hob_core::ids::{PoolId, WorkerId};
use hob_core::requests::Event;
use hob_core::status::PoolPart;
use hob_core::supervisor::{PoolView, Supervisor};
use hob_wire::strings::Strings;
use hob_wire::worker::{Preload, Role};
use rustix::fd::OwnedFd;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::ctx::Ctx;
use crate::jobs::job::Performer;
use crate::outbox;
use crate::project::Declared;
use crate::workers::processes::{self, Origin};

use loading::Loaded;
use reloads::Reloads;
use route::{Absences, From, Route, Way};

/// The handlers that are known.
#[derive(Debug)]
pub(crate) struct Catalog {
    handlers: HashMap<PoolId, Loaded>,
    routes: HashMap<Way, Route>,
    /// Programs that no configuration of their senders' names.
    absences: Absences,
    /// The apps of the site that this process serves, by their mounts' paths.
    mounts: BTreeMap<String, Declared>,
    reloads: Reloads,
}

impl Catalog {
    pub(crate) fn new(mounts: BTreeMap<String, Declared>) -> Catalog {
        Catalog {
            handlers: HashMap::new(),
            routes: HashMap::new(),
            absences: Absences::default(),
            mounts,
            reloads: Reloads::default(),
        }
    }

    /// Whether this process serves a site.
    pub(crate) fn is_site(&self) -> bool {
        !self.mounts.is_empty()
    }

    /// What is loaded of a pool's handler.
    pub(crate) fn get(&self, pool: PoolId) -> Option<&Loaded> {
        self.handlers.get(&pool)
    }

    /// What the receipts of a pool's messages say of all of them.
    pub(crate) fn performer(&self, pool: PoolId) -> Option<Arc<Performer>> {
        self.handlers.get(&pool).map(|loaded| Arc::clone(&loaded.performer))
    }

    /// After so many failed deliveries a tell to a pool is a dead letter.
    pub(crate) fn tries(&self, pool: PoolId) -> u32 {
        self.handlers.get(&pool).map_or(outbox::TRIES, Loaded::tries)
    }

    /// The name of the program that a pool is for.
    pub(crate) fn name_of(&self, pool: PoolId) -> Option<&str> {
        self.handlers.get(&pool).map(|loaded| loaded.name.as_str())
    }

    /// The address of a pool's program, as a message of this origin is kept.
    pub(crate) fn address(&self, from: &From, program: &[u8], pool: PoolId) -> Arc<[u8]> {
        let variables = self.handlers.get(&pool).map(Loaded::variables);
        address::address(from, program, variables.unwrap_or_default())
    }

    /// What a lane's worker looks at before each message. The worker's end of the lane is shut before
    /// the daemon reads that.
    pub(crate) fn doorbell(&mut self, pool: PoolId, end: Weak<OwnedFd>) -> Option<OwnedFd> {
        let loaded = self.handlers.get_mut(&pool)?;
        let doorbell = loaded.freshness.doorbell()?;
        loaded.lent.retain(|end| end.strong_count() > 0);
        loaded.lent.push(end);
        Some(doorbell)
    }

    /// A pool is over.
    pub(crate) fn forget(&mut self, pool: PoolId) {
        self.handlers.remove(&pool);
        self.reloads.ended(pool, loading::code(Became::Nothing), None);
    }

    /// Starts a process of a handler.
    pub(crate) fn start(&mut self, ctx: &mut Ctx<'_>, pool: PoolId, worker: WorkerId, role: Role) {
        if role == Role::Zygote {
            self.attempts(pool, worker);
        }
        let Some(loaded) = self.handlers.get_mut(&pool) else {
            return ctx.events.push_back(processes::stillborn(worker));
        };
        let definition = &loaded.definition;
        let host = &definition.host;
        let argv = ctx.processes.runtimes().handler(host);
        let preload = Preload {
            role,
            kind: definition.kind,
            target: definition.target.clone(),
            prefix: host.prefix.iter().collect(),
            modules: Strings::new(),
            argv: std::iter::once(definition.target.as_slice()).collect(),
            volatile: Strings::new(),
        };
        let started = argv.and_then(|argv| {
            let origin = Origin {
                serves: Serves::Handler(pool),
                key: loaded.key,
                session: 0,
                file: &host.interpreter,
                prints: Some(&definition.target),
                argv: &argv,
                env: &definition.env,
                directory: definition.directory.as_ref(),
                held_below: 0,
            };
            ctx.processes.start_with(worker, &origin, &preload)
        });
        if let Err(error) = started {
            let file = String::from_utf8_lossy(&loaded.definition.target);
            loaded.trouble = Some(format!("{file}: {error}"));
            ctx.events.push_back(processes::stillborn(worker));
        }
    }

    /// Loads mounts anew, one or all, and answers when it is known what became of each.
    pub(crate) fn reload(
        &mut self,
        ctx: &mut Ctx<'_>,
        request: &Value,
        reply: oneshot::Sender<Value>,
    ) {
        let asked = request.get("mount").and_then(Value::as_str);
        let error = if asked.is_some_and(|asked| !self.mounts.contains_key(asked)) {
            Some("no such app is mounted")
        } else if self.reloads.is_full() {
            Some("too many reloads wait")
        } else {
            None
        };
        if let Some(error) = error {
            // Whoever asked may have left.
            let _ = reply.send(json!({ "error": error }));
            return;
        }
        let handlers = &self.handlers;
        let asked = self.mounts.keys().filter(|mount| asked.is_none_or(|asked| asked == *mount));
        let mounts = asked.map(|mount| {
            // The newest, where its configuration was another before.
            let pools = handlers.iter().filter(|(_, loaded)| loaded.name == *mount);
            (mount.clone(), pools.map(|(pool, _)| *pool).max())
        });
        let mounts: Vec<_> = mounts.collect();
        for pool in mounts.iter().filter_map(|(_, pool)| *pool) {
            ctx.request(Event::Reload { pool });
        }
        self.reloads.begin(mounts.into_iter(), loading::code(Became::Nothing), reply);
    }

    #[cfg(test)]
    pub(crate) fn has_routes(&self) -> bool {
        !self.routes.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn has_absences(&self) -> bool {
        self.absences.has_some()
    }

    /// What handlers' pools are doing, for `hob status`; those that have processes, or trouble.
    pub(crate) fn pools(&self, core: &Supervisor, now_ns: u64) -> Vec<PoolPart> {
        let views = core.pools().into_iter();
        views.filter_map(|view| self.handlers.get(&view.id)?.part(view, now_ns)).collect()
    }
}

impl Loaded {
    fn part(&self, view: PoolView, now_ns: u64) -> Option<PoolPart> {
        let is_old = view.behind && self.is_old();
        let state = match (&self.trouble, view.idle + view.busy) {
            (Some(_), _) if !is_old => "cold",
            (_, 0) if view.state != "ready" => "warming",
            (_, _) => "warm",
        };
        let why = match &self.trouble {
            Some(trouble) if is_old => {
                Some(format!("the new code does not load, the old goes on: {trouble}"))
            }
            trouble => trouble.clone(),
        };
        if view.kib == 0 && view.idle + view.busy + view.queued == 0 && self.trouble.is_none() {
            return None;
        }
        Some(PoolPart {
            program: self.name.clone(),
            target: String::new(),
            interpreter: None,
            runtime: self.definition.host.row().name.to_owned(),
            isolation: view.recipe.name().code().to_owned(),
            state: state.to_owned(),
            ready: view.idle,
            busy: view.busy,
            queued: view.queued,
            ahead: view.recipe.ahead,
            calls: view.requests,
            workers: view.workers,
            recycled: view.recycled,
            memory_kib: view.kib,
            idle_s: now_ns.saturating_sub(view.last_used.0) / 1_000_000_000,
            old: is_old,
            why,
        })
    }
}
