//! Control requests: JSON in, JSON out. `{"verb": "status" | "stop" | "flush" | "replace" |
//! "trusted" | "log" | "dead" | "hooks" | "hosts" | "reload" | "sessions" | "kill"}`.

use std::sync::Arc;

use hob_core::hooks::{Account, HookOutcome};
use hob_core::ids::ProgramId;
use hob_core::log::Category;
use hob_core::status::{CallsPart, PoolPart, SCHEMA, Status};
use hob_core::supervisor::PoolView;
use hob_os::clock;
use hob_wire::exit::Exit;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::channel::Listener;
use crate::fronts::Front;
use crate::fronts::local::Accepting;
use crate::messages::Messages;
use crate::run::{Daemon, log};
use crate::socket::Name;

/// Receipts of runs of hooks that wait at most for those of their hooks.
const RUNS_MAX: usize = 64;

impl Daemon {
    /// Answers one request. Unknown verbs get an error, never silence.
    pub(crate) fn control(&mut self, request: &Value, reply: oneshot::Sender<Value>) {
        let answer = match request.get("verb").and_then(Value::as_str) {
            Some("status") => serde_json::to_value(self.status())
                .unwrap_or_else(|error| json!({ "error": error.to_string() })),
            Some("trusted") => {
                let (_, messages, mut ctx) = self.parts();
                messages.trust_changed(&mut ctx);
                json!({ "asked_anew": true })
            }
            Some("reload") => {
                let (_, messages, mut ctx) = self.parts();
                return messages.reload(&mut ctx, request, reply);
            }
            Some("hosts") => return self.messages.hosts.survey(reply),
            Some("sessions") => self.sessions.list(),
            Some("kill") => {
                let name = request.get("name").and_then(Value::as_str);
                return self.sessions.kill(name, reply);
            }
            Some("log") => log::control(request),
            Some("dead") => {
                let Messages { tells, hosts, .. } = &mut self.messages;
                return tells.dead_letters(hosts, request, reply);
            }
            Some("hooks") => self.hooks_ran(request),
            Some("flush") => return self.flushes.push(reply),
            Some("stop") => {
                hob_os::log!(Info, Category::Daemon, "somebody asks it to stop");
                self.stop_accepting();
                self.stop();
                json!({ "stopping": std::process::id() })
            }
            // Another build takes over: the name is free before the answer is sent.
            Some("replace") => {
                self.stop_accepting();
                self.socket.release();
                hob_os::log!(Info, Category::Daemon, "another build takes over");
                hob_os::log::leave();
                self.drain();
                json!({ "released": std::process::id() })
            }
            Some(other) => json!({ "error": format!("unknown verb `{other}`") }),
            None => json!({ "error": "no verb" }),
        };
        // Whoever asked may have left.
        let _ = reply.send(answer);
    }

    /// Keeps the receipt of hooks that their caller has run by itself.
    fn hooks_ran(&mut self, request: &Value) -> Value {
        let account = request.get("account").cloned().unwrap_or_default();
        let pid =
            request.get("pid").and_then(Value::as_u64).and_then(|pid| u32::try_from(pid).ok());
        let at = request.get("at").and_then(Value::as_str);
        let (Ok(account), Some(pid), Some(at)) =
            (serde_json::from_value::<Account>(account), pid, at)
        else {
            return json!({ "error": "not an account of hooks" });
        };
        let cancelled = account.outcome == HookOutcome::Cancelled;
        let reason = if cancelled { "cancelled" } else { "hooks" };
        let call = self.recorder.next_call();
        let run = account.receipt(call, at.to_owned(), pid, reason);
        match self.runs.len() < RUNS_MAX {
            true => self.runs.push(run),
            false => self.recorder.record(run),
        }
        json!({ "call": call })
    }

    /// Keeps the receipts of runs of hooks behind those of their hooks' calls, which wait for the end
    /// of a process: whoever asks for the last receipt after a run means the run's.
    pub(crate) fn record_runs(&mut self) {
        for run in self.runs.extract_if(.., |run| !self.calls.ledger.has_calls_of(run.caller_pid)) {
            self.recorder.record(run);
        }
    }

    /// Answers those who wait for the receipts, once no settled call's is outstanding. The disk
    /// may be slow, and the loop does not wait for it.
    pub(crate) fn flush_when_complete(&mut self) {
        let waiting = self.calls.ledger.is_waiting()
            || !self.runs.is_empty()
            || self.messages.leases.is_counting();
        if self.flushes.is_empty() || waiting {
            return;
        }
        self.leave_all_receipts();
        let (recorder, waiting) = (Arc::clone(&self.recorder), std::mem::take(&mut self.flushes));
        tokio::task::spawn_blocking(move || {
            recorder.flush();
            for reply in waiting {
                let _ = reply.send(json!({ "flushed": true }));
            }
        });
    }

    /// Calls that come from now on find nobody, and go cold or start another daemon.
    fn stop_accepting(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.task.abort();
        }
    }

    /// Sees to it that callers find this daemon, or lets it end where they cannot.
    pub(crate) fn look_for_the_name(&mut self) {
        match self.socket.look() {
            Name::Kept => {}
            Name::MadeAnew => {
                self.stop_accepting();
                let listener =
                    self.socket.take_listener().and_then(|listener| Listener::new(listener).ok());
                let front = Front {
                    build: self.build,
                    owner: self.inbox.clone(),
                    recorder: Arc::clone(&self.recorder),
                    around: Arc::clone(&self.around),
                    sets: self.sets.clone(),
                };
                self.accepting = listener.map(|listener| Accepting::begin(listener, front));
                if self.accepting.is_none() {
                    self.drain();
                }
            }
            Name::Lost => {
                hob_os::log::leave();
                self.stop_accepting();
                self.drain();
            }
        }
    }

    fn status(&self) -> Status {
        let now_ns = clock::now_ns();
        let counts = self.core.counts();
        let mut pools = self.core.pools();
        pools.retain(|pool| pool.program.is_some());
        pools.sort_by_key(|pool| std::cmp::Reverse(pool.last_used));
        Status {
            schema: SCHEMA.to_owned(),
            pid: std::process::id(),
            build: self.build.iter().map(|byte| format!("{byte:02x}")).collect(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: now_ns.saturating_sub(self.started_ns) / 1_000_000_000,
            socket: self.socket.path.display().to_string(),
            calls: CallsPart {
                running: self.calls.ledger.running().saturating_sub(u64::from(counts.queued)),
                queued: u64::from(counts.queued),
                warm_total: self.calls.ledger.warm_total,
                cold_total: self.calls.ledger.cold_total,
                refused_total: self.calls.ledger.refused_total,
                lost_total: self.calls.ledger.lost_total,
            },
            cold: self.calls.ledger.cold(),
            memory_kib: self.readings.iter().map(|(_, kib)| kib).sum(),
            budget_kib: self.budget_kib,
            pools: pools
                .iter()
                .map(|pool| self.pool(pool, now_ns))
                .chain(self.core.resting().into_iter().map(|program| self.resting(program)))
                .chain(self.messages.tables.catalog.pools(&self.core, now_ns))
                .collect(),
            messages: self.messages.tells.status(),
            hosts: self.messages.hosts.status(),
            recorder: self.recorder.status(),
            push: self.recorder.push_status(),
            log: log::part(),
        }
    }

    /// A program that has no pool, since it could not be warmed.
    fn resting(&self, program: ProgramId) -> PoolPart {
        let entry = self.warm.programs.get(program);
        PoolPart {
            program: entry.map_or_else(String::new, |entry| entry.name.clone()),
            target: entry.map_or_else(String::new, |entry| entry.target.clone()),
            interpreter: entry.and_then(|entry| entry.interpreter.clone()),
            runtime: entry.map_or("", |entry| entry.runtime.row().name).to_owned(),
            isolation: "fork".to_owned(),
            state: "cold".to_owned(),
            ready: 0,
            busy: 0,
            queued: 0,
            ahead: 0,
            calls: 0,
            workers: Vec::new(),
            recycled: 0,
            memory_kib: 0,
            idle_s: 0,
            old: false,
            why: match self.core.differs(program) {
                Some(exit) => Some(differs(exit)),
                None => entry.and_then(|entry| entry.trouble.clone()),
            },
        }
    }

    fn pool(&self, pool: &PoolView, now_ns: u64) -> PoolPart {
        let entry = pool.program.and_then(|program| self.warm.programs.get(program));
        let state = match pool.state {
            "ready" | "standby" => "warm",
            "failed" => "cold",
            other => other,
        };
        let trouble = entry.and_then(|entry| entry.trouble.clone());
        let demoted = pool.demoted.map(crate::calls::reason);
        PoolPart {
            program: entry.map_or_else(String::new, |entry| entry.name.clone()),
            target: entry.map_or_else(String::new, |entry| entry.target.clone()),
            interpreter: entry.and_then(|entry| entry.interpreter.clone()),
            runtime: entry.map_or("", |entry| entry.runtime.row().name).to_owned(),
            isolation: pool.recipe.name().code().to_owned(),
            state: state.to_owned(),
            ready: pool.idle,
            busy: pool.busy,
            queued: pool.queued,
            ahead: pool.ahead,
            calls: pool.requests,
            workers: Vec::new(),
            recycled: 0,
            memory_kib: pool.kib,
            idle_s: now_ns.saturating_sub(pool.last_used.0) / 1_000_000_000,
            old: false,
            why: demoted.or(trouble.filter(|_| state == "cold")),
        }
    }
}

/// Why a program runs cold that has failed warm, and what to do.
fn differs(exit: Exit) -> String {
    let ended = match exit {
        Exit::Code(code) => format!("with {code}"),
        Exit::Signal(signal) => format!("by signal {signal}"),
    };
    format!(
        "it ended {ended} warm and with 0 cold, with the same arguments; `hob verify` compares more, \
         and an edit or `hob warm` has it tried again"
    )
}
