//! The receipt of a run of hooks: one for the whole run, kept by a daemon that is there.
//!
//! Deliberately not here: starting one. Hooks need no daemon, and a run without one has its
//! `--json` and its report.

use hob_core::hooks::{Account, SetRecord};
use hob_daemon::recorder::format;
use hob_os::start::Start;
use jiff::Timestamp;
use serde_json::json;

use super::super::request;

/// How long a daemon may take to keep it.
const ANSWER_MS: u64 = 500;

/// What is to be told of a run.
#[derive(Debug)]
pub(super) struct Told {
    account: Account,
    at: Timestamp,
}

impl Told {
    /// A run of this directory that begins now.
    pub(super) fn new(dir: &[u8]) -> Told {
        let dir = String::from_utf8_lossy(dir).into_owned();
        Told { account: Account::new(dir), at: Timestamp::now() }
    }

    /// A set has ended.
    pub(super) fn add(&mut self, set: &SetRecord) {
        self.account.add(set);
    }

    /// Tells the daemon, if there is one and hob is not bypassed.
    pub(super) fn tell(&self, start: &Start) {
        if start.variable(b"HOB") == Some(b"0") {
            return;
        }
        let body = json!({
            "verb": "hooks",
            "at": format::moment(self.at),
            "pid": std::process::id(),
            "account": self.account,
        });
        // A receipt that cannot be kept is no fault of the hooks.
        let _ = request::send(start, &body.to_string(), ANSWER_MS);
    }
}
