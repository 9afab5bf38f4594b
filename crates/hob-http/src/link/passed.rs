//! What the loop is told of a request when the front is done with it, for its receipt.

use hob_os::clock;
use hob_wire::frame::Kind;
use hob_wire::message::{Passed, Turned};

use super::{Link, Out, encode};

/// When a request came, in nanoseconds of the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// Its head was whole.
    pub(crate) begun_ns: u64,
    /// Its body was whole, or it was known that it would not be.
    pub(crate) now_ns: u64,
}

/// A request of which the loop knows. Dropped, it says that the front is done with it.
#[derive(Debug)]
pub(crate) struct Passing {
    link: Link,
    id: u64,
    times: Times,
}

impl Passing {
    pub(super) fn new(link: &Link, id: u64, times: Times) -> Passing {
        Passing { link: link.clone(), id, times }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        let Times { begun_ns, now_ns } = self.times;
        self.link.passed(&Passed {
            id: self.id,
            turned: Turned::Not,
            begun_ns,
            whole_ns: now_ns,
            passed_ns: clock::now_ns(),
            program: b"",
        });
    }
}

impl Link {
    /// Tells of a request that no worker is asked, though its app is known.
    pub(crate) fn turned_away(&self, app: &str, times: Times, turned: Turned) {
        let is_whole = matches!(turned, Turned::Queue | Turned::Timeout);
        self.passed(&Passed {
            id: 0,
            turned,
            begun_ns: times.begun_ns,
            whole_ns: if is_whole { times.now_ns } else { 0 },
            passed_ns: clock::now_ns(),
            program: app.as_bytes(),
        });
    }

    fn passed(&self, passed: &Passed<'_>) {
        if let Some(bytes) = encode(Kind::Passed, 0, |out| passed.encode(out)) {
            self.send_surely(Out { bytes, file: None });
        }
    }
}
