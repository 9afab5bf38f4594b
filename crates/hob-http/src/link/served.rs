//! What the loop is told of requests that the front has answered itself, for their receipts.
//!
//! A receipt costs more than a small file does, so of each mount and status one request is told in
//! [`EVERY_NS`], which stands for those before it. What is left when nothing follows is told then.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hob_os::clock;
use hob_wire::frame::Kind;
use hob_wire::message::Served;

use super::passed::EVERY_NS;
use super::{Link, Out, encode};

/// The requests of a mount that the loop is told of.
#[derive(Debug)]
pub(crate) struct Telling {
    link: Link,
    mount: String,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    told_ns: u64,
    /// Of each status the newest request that was not told, and how many there are.
    newest: Vec<(Served<'static>, u64)>,
    /// A timer runs that will have them told.
    is_timed: bool,
}

impl Telling {
    pub(crate) fn new(link: &Link, mount: &str) -> Arc<Telling> {
        let (link, mount) = (link.clone(), mount.to_owned());
        Arc::new(Telling { link, mount, kept: Mutex::default() })
    }

    /// A request has been answered; it may stand for others.
    pub(crate) fn tell(self: &Arc<Telling>, served: Served<'static>) {
        let now_ns = clock::now_ns();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.newest.iter_mut().find(|(known, _)| known.status == served.status) {
            Some((known, count)) => (*known, *count) = (served, *count + 1),
            None => kept.newest.push((served, 1)),
        }
        if kept.is_timed {
            return;
        }
        let after_ns = (kept.told_ns + EVERY_NS).saturating_sub(now_ns);
        if after_ns > 0
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            kept.is_timed = true;
            let telling = Arc::clone(self);
            runtime.spawn(async move {
                tokio::time::sleep(Duration::from_nanos(after_ns)).await;
                telling.tell_all();
            });
            return;
        }
        drop(kept);
        self.tell_all();
    }

    fn tell_all(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        (kept.told_ns, kept.is_timed) = (clock::now_ns(), false);
        let newest = std::mem::take(&mut kept.newest);
        drop(kept);
        for (served, stands_for) in newest {
            let served = Served { stands_for, mount: self.mount.as_bytes(), ..served };
            if let Some(bytes) = encode(Kind::Served, 0, |out| served.encode(out)) {
                self.link.send_surely(Out { bytes, file: None });
            }
        }
    }
}
