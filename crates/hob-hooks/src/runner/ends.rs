//! How a hook has ended, as its record says it.

use hob_core::hooks::{End, HookRecord};
use hob_core::receipt::UsagePart;
use hob_os::clock;
use hob_os::spawn::{self, Waited};
use hob_os::trace::Child;
use hob_wire::call::{ColdEnded, Usage};
use hob_wire::exit::Exit;
use hob_wire::reply::Fate;
use rustix::fd::OwnedFd;

use super::running::Ending;
use crate::warm;

/// How a child of this process has ended.
pub(super) fn own_end(
    record: &mut HookRecord,
    child: &Child,
    report: Option<(u64, OwnedFd)>,
    ending: Ending,
) -> End {
    let Ok(Waited::Ended(status, user_us, system_us, peak_kib)) =
        spawn::wait(child.pid, spawn::Wait::Poll)
    else {
        return End::Lost;
    };
    record.usage = Some(UsagePart { user_us, system_us, peak_kib });
    let exit = Exit::from_wait_status(status);
    if let Some((main_ns, socket)) = report {
        let usage = Usage { user_us, system_us, peak_kib };
        let (timed_out, finished_ns) = (ending == Ending::TimedOut, clock::now_ns());
        warm::report_cold(&socket, &ColdEnded { exit, timed_out, main_ns, finished_ns, usage });
    }
    exited(record, exit)
}

/// How a hook ended that the daemon ran.
pub(super) fn warm_end(record: &mut HookRecord, fate: Fate, text: &[u8]) -> End {
    match fate {
        Fate::Exited(exit) => exited(record, exit),
        Fate::TimedOut => End::TimedOut,
        Fate::Lost => {
            record.message = Some(format!("lost: {}", String::from_utf8_lossy(text)));
            End::Lost
        }
    }
}

fn exited(record: &mut HookRecord, exit: Exit) -> End {
    match exit {
        Exit::Code(code) => {
            record.code = Some(code);
            End::Exited(code)
        }
        Exit::Signal(signal) => {
            record.signal = Some(signal);
            End::Signalled(signal)
        }
    }
}
