//! Who waits for what all hosts say: how their programs do, and their dead letters. Whoever asked may
//! have left.

use hob_core::hosts::{Order, Seen};
use hob_core::requests::dead::Elsewhere;
use hob_core::status::HostsPart;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::Connection;

/// The name of the format of `hob hosts --json`.
const SCHEMA: &str = "hob.hosts/1";
/// Who may wait for what all hosts say, at one time.
const SURVEYS_MAX: usize = 64;

/// Those who wait.
#[derive(Debug, Default)]
pub(super) struct Surveys {
    programs: Vec<oneshot::Sender<Value>>,
    letters: Vec<oneshot::Sender<Value>>,
}

impl Surveys {
    /// Has somebody wait for how all hosts' programs do; gives it back where none can say so.
    pub(super) fn wait(
        &mut self,
        connection: &Connection,
        reply: oneshot::Sender<Value>,
    ) -> Option<oneshot::Sender<Value>> {
        let is_coming = connection.link.is_some() && connection.trouble.is_none();
        let is_possible = connection.is_up || is_coming;
        if !is_possible || self.programs.len() >= SURVEYS_MAX {
            return Some(reply);
        }
        self.programs.push(reply);
        None
    }

    /// Whether all hosts are to be asked for those who wait: the first has come, or the connection.
    pub(super) fn is_wanted(&self) -> bool {
        !self.programs.is_empty()
    }

    /// All hosts have said so, or never will; with what is known of this one.
    pub(super) fn seen(&mut self, this: Option<HostsPart>, seen: &[Seen]) {
        let answer = shown(this, seen);
        for reply in self.programs.drain(..) {
            let _ = reply.send(answer.clone());
        }
    }

    /// Has somebody wait for the dead letters of other hosts; gives it back where none can come.
    pub(super) fn wait_for_letters(
        &mut self,
        connection: &Connection,
        reply: oneshot::Sender<Value>,
    ) -> Option<oneshot::Sender<Value>> {
        let is_first = self.letters.is_empty();
        let is_possible = connection.is_up && self.letters.len() < SURVEYS_MAX;
        if !is_possible || is_first && !connection.order(Order::AskLetters) {
            return Some(reply);
        }
        self.letters.push(reply);
        None
    }

    /// All hosts have said theirs.
    pub(super) fn letters_came(&mut self, elsewhere: &Elsewhere) {
        let answer = json!(elsewhere);
        for reply in self.letters.drain(..) {
            let _ = reply.send(answer.clone());
        }
    }
}

/// What `hob hosts` is told.
pub(super) fn shown(this: Option<HostsPart>, seen: &[Seen]) -> Value {
    json!({
        "schema": SCHEMA,
        "this": this,
        "programs": seen,
    })
}
