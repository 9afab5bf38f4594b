//! Which hosts offer the directory: asked of the daemon here, which asks all of them.

use std::sync::mpsc::{Receiver, Sender, channel};

use hob_core::hooks::glob;
use hob_core::hosts::Seen;
use hob_os::start::Start;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use serde::Deserialize;
use serde_json::{Value, json};

use super::places::Found;
use crate::verbs::request;

/// How long the answer may take: the daemon waits for what all hosts say, and for its first
/// connection.
const ANSWER_MS: u64 = 10_000;

/// Which hosts are wanted.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    /// The paths that the directory may have.
    pub(super) directories: Vec<String>,
    /// Patterns of hosts' names; one of them fits.
    pub(super) patterns: Vec<String>,
}

/// What is known of hosts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// Those that are wanted.
    pub(super) found: Vec<Found>,
    /// The names of others that offer the directory.
    pub(super) others: Vec<String>,
    /// Why none can be asked.
    pub(super) trouble: Option<String>,
}

impl Wish {
    /// Asks, and waits for the answer.
    pub(super) fn ask(&self, start: &Start) -> Answer {
        let question = json!({ "verb": "hosts" }).to_string();
        match request::send(start, &question, ANSWER_MS) {
            Ok((answer, _)) => self.read(&answer),
            Err(error) => Answer { trouble: Some(error.to_string()), ..Answer::default() },
        }
    }

    fn read(&self, answer: &Value) -> Answer {
        let this = &answer["this"];
        let trouble = match (this.is_null(), this["connected"] == true, this["why"].as_str()) {
            (true, _, _) => Some("config.toml names no server ([nats])".to_owned()),
            (false, false, Some(why)) => Some(why.to_owned()),
            (false, false, None) => Some("there is no connection to other hosts yet".to_owned()),
            (false, true, _) => None,
        };
        let trouble = answer["error"].as_str().map(str::to_owned).or(trouble);
        let seen = Vec::<Seen>::deserialize(&answer["programs"]).unwrap_or_default();
        let mut all = Answer { trouble, ..Answer::default() };
        for one in seen {
            let Some(hooks) = one.offered.hooks else { continue };
            if !self.directories.contains(&hooks.directory) {
                continue;
            }
            if self.patterns.iter().any(|pattern| glob::matches(pattern, &one.host)) {
                let (host, program, at_once) = (one.host, one.offered.program, hooks.at_once);
                all.found.push(Found { host, program, id: one.id, at_once });
            } else if !all.others.contains(&one.host) {
                all.others.push(one.host);
            }
        }
        all
    }
}

/// Asks again and again, each time in a thread of its own: an answer takes a third of a second.
pub(super) struct Survey {
    start: Start,
    wish: Wish,
    answer: Sender<Answer>,
    answers: Receiver<Answer>,
    bell: OwnedFd,
}

impl Survey {
    pub(super) fn new(start: &Start, wish: Wish) -> std::io::Result<Survey> {
        let (answer, answers) = channel();
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let start = Start { argv: start.argv.clone(), env: start.env.clone() };
        Ok(Survey { start, wish, answer, answers, bell })
    }

    /// Asks once more. The thread blocks the signals that this one blocks by now.
    pub(super) fn begin(&self) -> std::io::Result<()> {
        let (answer, wish, bell) = (self.answer.clone(), self.wish.clone(), self.bell.try_clone()?);
        let start = Start { argv: self.start.argv.clone(), env: self.start.env.clone() };
        let ask = move || {
            // Who has asked may have ended.
            let _ = answer.send(wish.ask(&start));
            let _ = rustix::io::write(&bell, &1_u64.to_ne_bytes());
        };
        std::thread::Builder::new().name("hob-hosts".to_owned()).spawn(ask)?;
        Ok(())
    }

    /// Readable when there is an answer.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// The answer, if there is one.
    pub(super) fn take(&self) -> Option<Answer> {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        self.answers.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_wanted_by_its_name_and_the_path_of_its_directory() {
        let program = |host: &str, directory: &str| {
            json!({
                "host": host, "program": "deploy", "version": "1.0.0", "claimed": false,
                "hooks": { "directory": directory, "at_once": 2 }, "id": "x", "asked": 0,
                "failed": 0, "last_failure": "", "spent_us": 0, "ready": 0, "busy": 0, "queued": 0,
            })
        };
        let wish = Wish {
            directories: vec!["/srv/deploy.d".to_owned()],
            patterns: vec!["web-*".to_owned()],
        };
        let all = [
            program("web-1", "/srv/deploy.d"),
            program("web-2", "/srv/other.d"),
            program("db-1", "/srv/deploy.d"),
        ];
        let read = wish.read(&json!({ "this": { "connected": true }, "programs": all }));
        let hosts: Vec<&str> = read.found.iter().map(|found| found.host.as_str()).collect();
        assert_eq!(
            (hosts, read.others, read.trouble),
            (vec!["web-1"], vec!["db-1".to_owned()], None)
        );
        let read = wish.read(&json!({ "this": null, "programs": [] }));
        assert!(read.trouble.unwrap().contains("names no server"));
    }
}
