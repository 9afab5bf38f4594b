//! Where a shell cannot be forked at its entry (the code that waits there is x86-64's): no hook is.

use hob_core::hooks::Reason;
use hob_os::signals;
use hob_os::trace::Child;
use rustix::io;

use crate::listing::Identity;
use crate::start::{HookFile, Stdio};

/// The zygotes of a runner: none.
#[derive(Debug)]
pub(crate) struct Zygotes;

impl Zygotes {
    pub(crate) fn new(_: signals::Set) -> Zygotes {
        Zygotes
    }

    #[expect(clippy::unused_self, reason = "as where there are some")]
    pub(crate) fn hosts(&self, _: Identity) -> bool {
        false
    }

    #[expect(clippy::unused_self, reason = "as where there are some")]
    pub(crate) fn are_there(&self) -> bool {
        false
    }

    pub(crate) fn rest(&mut self) {}

    #[expect(clippy::unused_self, reason = "as where there are some")]
    pub(crate) fn fork(
        &mut self,
        _: HookFile<'_>,
        _: Stdio<'_>,
        _: bool,
    ) -> Result<io::Result<Child>, Option<Reason>> {
        Err(None)
    }
}
