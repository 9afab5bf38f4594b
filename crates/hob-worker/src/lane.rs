//! A lane: a connection to one sender, on which the daemon does not hear.
//!
//! Before each message one `poll` asks, in this order, whether the doorbell rang, whether something
//! was mounted, and whether the lane was shut. Who finds no bell rung, and the lane open *after*
//! that, has a message that was sent before anything changed that the daemon knows of
//! (`docs/why/lanes.md`). Nothing is read from the doorbell: it is the daemon's.
//!
//! What is begun and what has ended is counted in memory that the daemon shares, before the
//! handler runs and before its answer is sent: so it is known of this process when it has died.

use std::os::fd::OwnedFd;

use hob_os::clock;
use hob_os::tally::{Outcome, Page};
use hob_wire::frame::Kind;
use hob_wire::message::{Handled, Lend, Message, Reason};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::Shutdown;

use crate::frames::Frames;
use crate::{Handle, Said, ServeError, fail, perform, put, wire_error};

/// A report of what a lane has done goes out this often while it is busy.
const REPORT_NS: u64 = 10_000_000;

struct Report {
    lane: u64,
    count: u32,
    raised: u32,
    newest: Newest,
    at_ns: u64,
}

#[derive(Clone, Copy)]
struct Newest {
    said: Said,
    main_ns: u64,
    finished_ns: u64,
}

impl Newest {
    fn outcome(self) -> Outcome {
        match self.said {
            Said::Answer => Outcome::Answered,
            Said::Failure => Outcome::Raised,
        }
    }
}

/// The descriptors that come with a lane.
pub(super) struct Ends {
    pub(super) lane: OwnedFd,
    pub(super) doorbell: OwnedFd,
    pub(super) tally: OwnedFd,
}

/// Answers until the sender leaves, the daemon recalls, or the uses are up.
pub(super) fn serve(
    lend: Lend,
    Ends { lane, doorbell, tally }: Ends,
    daemon: &Frames,
    handle: Handle<'_>,
) -> Result<(), ServeError> {
    let newest = Newest { said: Said::Answer, main_ns: 0, finished_ns: 0 };
    let mut report = Report { lane: lend.lane, count: 0, raised: 0, newest, at_ns: 0 };
    let mounts = std::fs::File::open("/proc/self/mountinfo")?;
    let tally = Page::map(tally)?;
    let mut sender = Frames::new(lane);
    let mut left = lend.uses;
    let mut out = Vec::new();
    // Until its end; and one that breaks the rules is not listened to any more.
    // What is there is noted before it is read: at each moment of a message that is not answered
    // either it lies in the lane or the tally has it, whenever this process is killed.
    while sender.wait().is_ok_and(|there| there) {
        let main_ns = clock::now_ns();
        tally.begin(main_ns);
        let Ok(Some((Kind::Message, at))) = sender.next() else {
            tally.take_back();
            break;
        };
        out.clear();
        // Shut by us, it is shut for what came after the last use too.
        if left == 0 || is_over(&doorbell, &mounts, sender.socket()) {
            tally.take_back();
            let message = Message::decode(sender.bytes(at)).map_err(wire_error)?;
            fail(&mut out, message.id, Reason::Again, "");
            if sender.send(&out).is_err() {
                break;
            }
            continue;
        }
        let message = Message::decode(sender.bytes(at.clone())).map_err(wire_error)?;
        if message.remaining_us > 0 {
            tally.until(main_ns.saturating_add(message.remaining_us.saturating_mul(1000)));
        }
        let said = perform(&message, handle, &mut out);
        left -= 1;
        report.count += 1;
        report.raised += u32::from(said == Said::Failure);
        report.newest = Newest { said, main_ns, finished_ns: clock::now_ns() };
        tally.end(report.newest.finished_ns, report.newest.outcome());
        if left == 0 {
            let _ = rustix::net::shutdown(sender.socket(), Shutdown::Read);
        }
        let answered = sender.send(&out);
        if report.newest.finished_ns - report.at_ns > REPORT_NS || said == Said::Failure {
            report.send(daemon, &mut out, Over::No)?;
        }
        if answered.is_err() {
            break;
        }
    }
    drop(sender);
    report.send(daemon, &mut out, Over::Yes)?;
    Ok(())
}

fn is_over(doorbell: &OwnedFd, mounts: &std::fs::File, lane: &OwnedFd) -> bool {
    let mut asked = [
        PollFd::new(doorbell, PollFlags::IN),
        PollFd::new(mounts, PollFlags::PRI | PollFlags::ERR),
        PollFd::new(lane, PollFlags::RDHUP),
    ];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // What cannot be asked may have changed.
    rustix::io::retry_on_intr(|| rustix::event::poll(&mut asked, Some(&at_once))) != Ok(0)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Yes,
    No,
}

impl Report {
    fn send(&mut self, daemon: &Frames, out: &mut Vec<u8>, over: Over) -> rustix::io::Result<()> {
        let handled = Handled {
            lane: self.lane,
            count: std::mem::take(&mut self.count),
            raised: std::mem::take(&mut self.raised),
            newest_raised: self.newest.said == Said::Failure,
            main_ns: self.newest.main_ns,
            finished_ns: self.newest.finished_ns,
            over: over == Over::Yes,
        };
        self.at_ns = self.newest.finished_ns;
        out.clear();
        put(out, Kind::Handled, |out| handled.encode(out));
        daemon.send(out)
    }
}
