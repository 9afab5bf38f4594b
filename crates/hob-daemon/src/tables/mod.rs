//! The tables that all messages go through, whoever brings them and whoever performs them.

pub(crate) mod senders;

use std::collections::BTreeMap;
use std::sync::Arc;

use hob_core::ids::CallId;
use hob_core::requests::Event;

use crate::ctx::Ctx;
use crate::handlers::Catalog;
use crate::jobs::job::{Asked, Job, Performer};
use crate::jobs::ledger::Ledger;
use crate::jobs::origin::Origin;
use crate::jobs::receipts::Receipts;
use crate::project::Declared;

use senders::Senders;

/// The tables; each owns its fields.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) senders: Senders,
    pub(crate) jobs: Ledger,
    pub(crate) catalog: Catalog,
    pub(crate) receipts: Receipts,
    /// Nothing new is delivered.
    pub(crate) is_stopping: bool,
}

impl Tables {
    pub(crate) fn new(mounts: BTreeMap<String, Declared>) -> Tables {
        let catalog = Catalog::new(mounts);
        Tables {
            senders: Senders::default(),
            jobs: Ledger::default(),
            receipts: Receipts::new(catalog.is_site()),
            catalog,
            is_stopping: false,
        }
    }

    /// A message for a pool that came then; it is put before the core when it is [opened](Self::open).
    pub(crate) fn message(&self, origin: Origin, asked: Asked, received_ns: u64) -> Job {
        let known = self.catalog.performer(asked.pool);
        let performer = known.unwrap_or_else(|| Arc::new(Performer::unknown(asked.pool)));
        Job::message(origin, performer, asked, received_ns)
    }

    /// Puts a message before the core.
    pub(crate) fn open(&mut self, ctx: &mut Ctx<'_>, call: CallId, job: Job) {
        let Some(asked) = job.asked() else { return };
        let Asked { pool, ref key, deadline, .. } = *asked;
        ctx.request(Event::Arrived { call, pool, key: key.clone(), deadline });
        self.jobs.open(call, job);
    }
}
