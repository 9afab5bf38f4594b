//! Reloads that somebody waits for. Invariant: whoever asked hears of each mount once.

use std::collections::BTreeMap;

use hob_core::ids::PoolId;
use hob_os::clock;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// Reloads that are waited for at one time.
const WAITING_MAX: usize = 64;
/// What a reload tells, and its version.
const SCHEMA: &str = "hob.serve.reload/1";

/// The reloads that are not over.
#[derive(Debug, Default)]
pub(super) struct Reloads(Vec<Reload>);

#[derive(Debug)]
struct Reload {
    began_ns: u64,
    waiting: BTreeMap<PoolId, String>,
    done: Vec<Value>,
    reply: oneshot::Sender<Value>,
}

impl Reloads {
    /// Whether as many are waited for as may be.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= WAITING_MAX
    }

    /// A reload of these mounts begins, each with its pool, if it has one.
    pub(super) fn begin(
        &mut self,
        mounts: impl Iterator<Item = (String, Option<PoolId>)>,
        nothing: &str,
        reply: oneshot::Sender<Value>,
    ) {
        let began_ns = clock::now_ns();
        let mut reload = Reload { began_ns, waiting: BTreeMap::new(), done: Vec::new(), reply };
        for (mount, pool) in mounts {
            match pool {
                Some(pool) => _ = reload.waiting.insert(pool, mount),
                None => reload.done.push(outcome(&mount, nothing, 0, None)),
            }
        }
        self.0.push(reload);
        self.answer();
    }

    /// It is known what became of loading a pool, or the pool is forgotten.
    pub(super) fn ended(&mut self, pool: PoolId, became: &str, why: Option<&str>) {
        for reload in &mut self.0 {
            if let Some(mount) = reload.waiting.remove(&pool) {
                let us = clock::now_ns().saturating_sub(reload.began_ns) / 1000;
                reload.done.push(outcome(&mount, became, us, why));
            }
        }
        self.answer();
    }

    fn answer(&mut self) {
        for mut reload in self.0.extract_if(.., |reload| reload.waiting.is_empty()) {
            let mount = |done: &Value| done["mount"].as_str().map(str::to_owned);
            reload.done.sort_by_key(mount);
            // Whoever asked may have left.
            let _ = reload.reply.send(json!({ "schema": SCHEMA, "mounts": reload.done }));
        }
    }
}

fn outcome(mount: &str, became: &str, us: u64, why: Option<&str>) -> Value {
    json!({ "mount": mount, "outcome": became, "us": us, "why": why })
}
