//! What a part of the loop may reach beyond itself. Narrow, and the same for every part: a part
//! asks the core by an event, and acts by the processes and the recorder.

use std::collections::VecDeque;
use std::path::Path;

use hob_core::event::Event;
use hob_core::ids::PoolId;
use hob_core::requests;
use hob_core::supervisor::Supervisor;

use crate::recorder::Recorder;
use crate::warm::Warm;
use crate::workers::processes::Processes;

/// What a part may reach.
#[derive(Debug)]
pub(crate) struct Ctx<'a> {
    /// The core: parts read it, and the loop alone hands it events.
    pub(crate) core: &'a mut Supervisor,
    /// Events that came of what was done, to be handled before anything new.
    pub(crate) events: &'a mut VecDeque<Event>,
    pub(crate) processes: &'a mut Processes,
    /// Programs, and whether what is warm of them is fresh.
    pub(crate) warm: &'a mut Warm,
    pub(crate) recorder: &'a Recorder,
    /// The state directory, receipts or not.
    pub(crate) home: Option<&'a Path>,
}

impl Ctx<'_> {
    /// Something has happened that is about requests alone.
    pub(crate) fn request(&mut self, event: requests::Event) {
        self.events.push_back(Event::Request(event));
    }

    /// A number for a pool that is about to be opened.
    pub(crate) fn new_pool(&mut self) -> PoolId {
        self.core.new_pool()
    }
}
