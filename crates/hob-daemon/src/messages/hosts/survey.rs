//! How the offered programs do: said to who asks that of services, and asked of all hosts for `hob
//! hosts`.

use std::path::Path;

use hob_core::hosts::{Order, Seen, Stats};
use hob_core::requests::dead::Elsewhere;
use hob_os::clock;
use hob_wire::message::Reason;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::ctx::Ctx;
use crate::messages::Messages;

/// The name of the format of `hob hosts --json`.
const SCHEMA: &str = "hob.hosts/1";
/// Who may wait for what all hosts say, at one time.
const SURVEYS_MAX: usize = 64;

impl Messages {
    /// Counts an ask of another host that has ended; without a reason it was answered.
    pub(super) fn count_served(&mut self, program: &str, spent_us: u64, failed: Option<Reason>) {
        let served = self.hosts.served.entry(program.to_owned()).or_default();
        served.asked += 1;
        served.spent_us = served.spent_us.saturating_add(spent_us);
        if let Some(reason) = failed {
            served.failed += 1;
            reason.code().clone_into(&mut served.last_failure);
        }
    }

    /// Says how an offered program does.
    pub(super) fn say_stats(&mut self, ctx: &mut Ctx<'_>, to: String, program: String) {
        let counted = self.hosts.served.get(&program).cloned().unwrap_or_default();
        let pools = self.pools(ctx.core, clock::now_ns());
        let pool = pools.iter().find(|pool| pool.program == program);
        let (ready, busy, queued) =
            pool.map_or((0, 0, 0), |pool| (pool.ready, pool.busy, pool.queued));
        let dead = self.told().dead;
        let stats = Stats { ready, busy, queued, dead, ..counted };
        self.hosts.order(Order::Stats { to, program, stats });
    }

    /// Asks all hosts how their programs do; the answer comes when they have said so.
    pub(crate) fn survey(&mut self, reply: oneshot::Sender<Value>) {
        let is_coming = self.hosts.link.is_some() && self.hosts.trouble.is_none();
        let is_possible = self.hosts.is_up || is_coming;
        if !is_possible || self.hosts.surveys.len() >= SURVEYS_MAX {
            let _ = reply.send(self.hosts_seen(&[]));
            return;
        }
        self.hosts.surveys.push(reply);
        if self.hosts.is_up && self.hosts.surveys.len() == 1 {
            self.begin_survey();
        }
    }

    /// Asks for those who wait, if any do.
    pub(super) fn begin_survey(&mut self) {
        if !self.hosts.surveys.is_empty() && !self.hosts.order(Order::Survey) {
            self.surveyed(Vec::new());
        }
    }

    /// All hosts have said so.
    pub(super) fn surveyed(&mut self, seen: Vec<Seen>) {
        let answer = self.hosts_seen(&seen);
        for reply in std::mem::take(&mut self.hosts.surveys) {
            // Whoever asked may have left.
            let _ = reply.send(answer.clone());
        }
    }

    /// Has somebody wait for the dead letters of other hosts; gives it back where none can come.
    pub(in crate::messages) fn wait_for_letters(
        &mut self,
        reply: oneshot::Sender<Value>,
    ) -> Option<oneshot::Sender<Value>> {
        let is_first = self.hosts.letters.is_empty();
        let is_possible = self.hosts.is_up && self.hosts.letters.len() < SURVEYS_MAX;
        if !is_possible || is_first && !self.hosts.order(Order::AskLetters) {
            return Some(reply);
        }
        self.hosts.letters.push(reply);
        None
    }

    /// All hosts have said theirs.
    pub(super) fn letters_came(&mut self, elsewhere: &Elsewhere) {
        for reply in std::mem::take(&mut self.hosts.letters) {
            // Whoever asked may have left.
            let _ = reply.send(crate::messages::dead::value(elsewhere));
        }
    }

    /// This host's name.
    pub(in crate::messages) fn host_name(&self) -> &str {
        &self.hosts.name
    }

    /// Where an offered program's `hob.toml` is.
    pub(in crate::messages) fn offered_from(&self, program: &str) -> Option<&Path> {
        self.hosts.offers.get(program).map(|(_, directory)| directory.as_path())
    }

    /// Orders something of the connection; without one nothing comes of it.
    pub(in crate::messages) fn order_hosts(&self, order: Order) {
        self.hosts.order(order);
    }

    fn hosts_seen(&self, seen: &[Seen]) -> Value {
        json!({
            "schema": SCHEMA,
            "this": self.hosts.status(),
            "programs": seen,
        })
    }
}
