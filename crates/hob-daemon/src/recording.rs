//! A part of the loop on its own, for tests: it takes inputs and effects, and what it asks of the
//! core stays in the queue of events, where the test reads it. What a part reaches is the real
//! thing, in a directory of the test's own; nothing is started unless the test's program is.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use hob_core::event::Event;
use hob_core::limits::Limits;
use hob_core::supervisor::Supervisor;
use hob_os::process::near::Near;
use hob_os::uds;
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::channel::{self, Frame, Reader, Stream};
use crate::ctx::Ctx;
use crate::inputs::{INBOX_MAX, Input};
use crate::recorder::Recorder;
use crate::warm::Warm;
use crate::warm::fresh::Fingerprints;
use crate::warm::programs::Programs;
use crate::warm::resolutions::Resolutions;
use crate::workers::logs::Prints;
use crate::workers::processes::Processes;
use crate::workers::runtimes::Runtimes;

/// What a part may reach, owned.
#[derive(Debug)]
pub(crate) struct Recording {
    core: Supervisor,
    events: VecDeque<Event>,
    processes: Processes,
    warm: Warm,
    pub(crate) recorder: Recorder,
    home: TempDir,
    /// What processes would tell the loop; kept, so that telling it is no error.
    _inputs: mpsc::Receiver<Input>,
}

impl Recording {
    /// All that there is before the first input, in a directory that goes with it.
    pub(crate) fn new() -> Recording {
        let home = tempfile::tempdir().unwrap();
        let (inbox, inputs) = mpsc::channel(INBOX_MAX);
        let runtimes = Runtimes::write(home.path(), None).unwrap();
        let near = Arc::new(Near::default());
        Recording {
            core: Supervisor::new(Limits::default()),
            events: VecDeque::new(),
            processes: Processes::new(runtimes, inbox, home.path(), near, Prints::Files).unwrap(),
            warm: Warm {
                programs: Programs::new(std::collections::HashMap::new()),
                fresh: Fingerprints::new(),
                resolutions: Resolutions::default(),
            },
            recorder: Recorder::start(Some(home.path())),
            home,
            _inputs: inputs,
        }
    }

    /// The directory of it all.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// What a part is handed.
    pub(crate) fn ctx(&mut self) -> Ctx<'_> {
        Ctx {
            core: &mut self.core,
            events: &mut self.events,
            processes: &mut self.processes,
            warm: &mut self.warm,
            recorder: &self.recorder,
            home: Some(self.home.path()),
        }
    }

    /// What the part asked of the core since the last look.
    pub(crate) fn told(&mut self) -> Vec<Event> {
        self.events.drain(..).collect()
    }
}

/// The other end of a connection: what a caller or a sender reads.
#[derive(Debug)]
pub(crate) struct OtherEnd {
    reader: Reader,
    stream: Arc<Stream>,
}

impl OtherEnd {
    /// The next frame; `None`: the connection was closed.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        self.reader.next().await.unwrap()
    }

    /// The next frame of what was read already.
    pub(crate) fn at_hand(&mut self) -> Option<Frame> {
        self.reader.at_hand().unwrap()
    }

    /// Whether nothing was sent that is not read.
    pub(crate) fn has_nothing(&self) -> bool {
        rustix::io::ioctl_fionread(&*self.stream).unwrap() == 0
    }
}

/// A connection: the end that a part has, and the other.
pub(crate) fn connection() -> (Arc<Stream>, OtherEnd) {
    let (one, other) = uds::pair().unwrap();
    let adopt = |end| channel::adopt(end).unwrap();
    let stream = adopt(other);
    (adopt(one), OtherEnd { reader: Reader::new(Arc::clone(&stream)), stream })
}
