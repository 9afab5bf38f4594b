//! The fronts: each turns what its callers bring into a call, and its outcome back. None knows
//! what isolation is.

pub(crate) mod hooks;
pub(crate) mod local;
pub(crate) mod message;
pub(crate) mod repl;

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::around::Around;
use crate::inputs::Input;
use crate::recorder::Recorder;
use crate::sets::Sets;

/// What a front needs to know.
#[derive(Debug, Clone)]
pub(crate) struct Front {
    pub(crate) build: [u8; 16],
    pub(crate) owner: mpsc::Sender<Input>,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) around: Arc<Around>,
    pub(crate) sets: Sets,
}
