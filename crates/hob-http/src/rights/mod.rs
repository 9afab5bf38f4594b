//! The rights of a mount: whether who asks may have what it asks for, as a program or an address
//! says (docs/rights.md). What is believed and for how long is `hob_core::rights`'.
//!
//! Invariants: what cannot be known is refused and never kept; of a credential only a digest is
//! kept, and none is in a log or an error; two who differ in what is asked about them never share
//! an answer; a question ends with the last who waits for it.

pub(crate) mod access;
mod ask;
mod question;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hob_core::rights::{self as core, Found, Told, Who};
use hob_wire::message::Judged;
use hyper::StatusCode;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::body::{Refused, refused};
use crate::client::{Client, Url};
use crate::link::{App, Link};
pub(crate) use question::{About, Question, who};

/// Where the rights of a mount are asked for.
#[derive(Debug, Clone)]
pub enum Where {
    /// A program of the site's `hob.toml`.
    Program(String),
    /// An address, as nginx's `auth_request` asks it.
    Url(Url),
}

/// Who asks, as a request says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum User {
    /// The value of a header, in lower case; believed of a proxy alone, if so.
    Header(String, bool),
    /// The value of a cookie.
    Cookie(String),
    /// The address of the client.
    Peer,
}

/// The rights of a mount, as they are configured.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Where they are asked for.
    pub at: Where,
    /// Who asks.
    pub user: User,
    /// How long a yes is kept after it was asked for, in microseconds.
    pub keep_us: u64,
    /// The same of a no.
    pub keep_no_us: u64,
    /// How long a question may take where it is answered, in microseconds.
    pub within_us: u64,
    /// How many requests may wait for answers.
    pub waiting_max: usize,
}

/// The rights of a mount.
#[derive(Debug)]
pub(crate) struct Rights {
    at: At,
    user: User,
    within: Duration,
    table: Mutex<Table>,
}

#[derive(Debug)]
enum At {
    /// Twice: with the time of an answer, and with that of a load beside it.
    Program([Arc<App>; 2]),
    Url(Url, Client),
}

#[derive(Debug)]
struct Table {
    rights: core::Rights,
    next: u64,
    /// Who waits for each question.
    waiting: HashMap<u64, Vec<(u64, oneshot::Sender<Told>)>>,
    asking: HashMap<u64, AbortHandle>,
}

impl Rights {
    pub(crate) fn new(terms: Terms) -> Arc<Rights> {
        let at =
            match terms.at {
                Where::Program(name) => {
                    let loaded_us = terms.within_us.saturating_add(ask::LOAD_US_MAX);
                    At::Program([terms.within_us, loaded_us].map(|us| {
                        App::new(name.clone(), us, ANSWER_BYTES_MAX, None, &Arc::default())
                    }))
                }
                Where::Url(url) => At::Url(url, Client::new()),
            };
        let rights = core::Rights::new(core::Terms {
            keep_us: terms.keep_us,
            keep_no_us: terms.keep_no_us,
            waiting_max: terms.waiting_max,
        });
        let (waiting, asking) = (HashMap::new(), HashMap::new());
        let table = Mutex::new(Table { rights, next: 0, waiting, asking });
        let within = Duration::from_micros(terms.within_us);
        Arc::new(Rights { at, user: terms.user, within, table })
    }

    /// Whether who asks may have it: `Ok(false)` if not.
    ///
    /// # Errors
    /// If it cannot be known.
    pub(crate) async fn allow(
        self: &Arc<Rights>,
        link: &Link,
        about: &About<'_>,
    ) -> Result<(bool, Judged), Refused> {
        let question = Question::of(about, &self.user, matches!(self.at, At::Url(..)))?;
        let (number, from, coming) = {
            let mut table = self.lock();
            let (number, from) = match table.rights.arrive(now(), &question.key) {
                Found::Yes => return Ok((true, Judged::Kept)),
                Found::No => return Ok((false, Judged::Kept)),
                Found::Full => return Err(full()),
                Found::Ask(number) => (number, Judged::Asked),
                Found::Wait(number) => (number, Judged::Shared),
            };
            let (tell, coming) = oneshot::channel();
            table.next += 1;
            let waiter = table.next;
            table.waiting.entry(number).or_default().push((waiter, tell));
            (number, from, Waits { rights: self, question: number, waiter, coming })
        };
        if from == Judged::Asked {
            let (rights, link) = (Arc::clone(self), link.clone());
            let task = tokio::spawn(async move {
                let verdict = ask::ask(&rights.at, &link, &question, rights.within).await;
                rights.answered(number, verdict);
            });
            self.lock().asking.insert(number, task.abort_handle());
        }
        match coming.told(self.within).await {
            Told::Yes => Ok((true, from)),
            Told::No => Ok((false, from)),
            Told::Failed => Err(failed()),
        }
    }

    /// Forgets what is known of one, or of all.
    pub(crate) fn forget(&self, who: Option<&Who>) {
        self.lock().rights.forget(who);
    }

    fn answered(&self, question: u64, verdict: core::Verdict) {
        let mut table = self.lock();
        table.asking.remove(&question);
        let told = table.rights.answered(now(), question, verdict);
        let waiting = table.waiting.remove(&question).unwrap_or_default();
        drop(table);
        for (_, tell) in waiting {
            // Who waits may have left.
            let _ = tell.send(told.unwrap_or(Told::Failed));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One who waits for an answer, and may leave.
#[derive(Debug)]
struct Waits<'r> {
    rights: &'r Rights,
    question: u64,
    waiter: u64,
    coming: oneshot::Receiver<Told>,
}

impl Waits<'_> {
    async fn told(mut self, within: Duration) -> Told {
        // The question has an end of its own; this one holds if it was lost.
        let most = Duration::from_micros(ask::LOAD_US_MAX) + 2 * within + SPARE;
        let told = tokio::time::timeout(most, &mut self.coming).await;
        match told {
            Ok(Ok(told)) => told,
            Ok(Err(_)) | Err(_) => Told::Failed,
        }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut table = self.rights.lock();
        let Some(waiting) = table.waiting.get_mut(&self.question) else { return };
        waiting.retain(|(waiter, _)| *waiter != self.waiter);
        if table.rights.left(self.question) {
            table.waiting.remove(&self.question);
            if let Some(task) = table.asking.remove(&self.question) {
                task.abort();
            }
        }
    }
}

/// The most bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// Longer than a question may take.
const SPARE: Duration = Duration::from_secs(1);

/// Microseconds of the clock that counts while the machine is suspended.
fn now() -> core::Time {
    let time = clock_gettime(ClockId::Boottime);
    let (seconds, nanoseconds) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
    seconds * 1_000_000 + nanoseconds / 1000
}

fn failed() -> Refused {
    refused(StatusCode::SERVICE_UNAVAILABLE, FAILED)
}

fn full() -> Refused {
    refused(StatusCode::SERVICE_UNAVAILABLE, "too many requests wait for their rights")
}

/// What a client is told whose rights cannot be known.
const FAILED: &str = "rights-failed: whether this is allowed cannot be known now";
