//! What a caller is told of its sets: records to frames. Sending never waits.

use hob_core::hooks::{Capture, HookOutcome, HookRecord, SetRecord, Trouble, Way};
use hob_wire::call::Usage;
use hob_wire::exit::Exit;
use hob_wire::frame::{self, Kind};
use hob_wire::hooks::{
    HookEnded, HookOutput, HookStarted, OUTPUT_MAX, Part, Remarks, STAMPS_MAX, SetBegun, SetEnded,
    Started, Stream, Verdict,
};
use hob_wire::strings::Strings;

use super::Open;

/// A set was listed; its first hook is next.
pub(super) fn begun(open: &Open, names: &[Vec<u8>]) {
    let hooks: Strings = names.iter().collect();
    let begun = SetBegun { set: open.number, call: open.call.0, hooks };
    let mut bytes = Vec::with_capacity(256);
    // A directory of more names than a frame holds is told without them.
    if frame::append(&mut bytes, Kind::SetBegun, 0, |out| begun.encode(out)).is_err() {
        let begun = SetBegun { hooks: Strings::new(), ..begun };
        let _ = frame::append(&mut bytes, Kind::SetBegun, 0, |out| begun.encode(out));
    }
    if !names.is_empty() {
        turn(open, 0, &mut bytes);
    }
    open.outlet.send(Some(bytes));
}

/// A hook's turn has come.
fn turn(open: &Open, hook: usize, bytes: &mut Vec<u8>) {
    let started = HookStarted { set: open.number, hook: place(hook) };
    let _ = frame::append(bytes, Kind::HookStarted, 0, |out| started.encode(out));
}

/// A hook has ended; the next one's turn comes now, if there is one. That of a set's last hook is
/// told with the set's end, which follows at once: one wake-up less for its caller.
pub(super) fn hook_ended(open: &mut Open, record: &HookRecord) {
    let kept = |capture: &Capture| capture.head.0.len() + capture.tail.0.len();
    let mut bytes = Vec::with_capacity(512 + kept(&record.stdout) + kept(&record.stderr));
    let parts =
        [&record.stdout.head, &record.stdout.tail, &record.stderr.head, &record.stderr.tail];
    for (part, all) in Part::ALL.into_iter().zip(parts) {
        for some in all.0.chunks(OUTPUT_MAX) {
            let output =
                HookOutput { set: open.number, hook: place(open.ended), part, bytes: some };
            let _ = frame::append(&mut bytes, Kind::HookOutput, 0, |out| output.encode(out));
        }
    }
    let ended = ended(open, record);
    // Lines for people and stamps are bounded, so that it is never larger than a frame.
    let _ = frame::append(&mut bytes, Kind::HookEnded, 0, |out| ended.encode(out));
    if !record.outcome.goes_on() || open.ended + 1 == open.hooks {
        open.last = bytes;
        return;
    }
    if open.cut.is_none() {
        turn(open, open.ended + 1, &mut bytes);
    }
    open.outlet.send(Some(bytes));
}

fn ended(open: &Open, record: &HookRecord) -> HookEnded {
    let exit = match (record.code, record.signal) {
        (Some(code), _) => Some(Exit::Code(code)),
        (None, Some(signal)) => Some(Exit::Signal(signal)),
        (None, None) => None,
    };
    HookEnded {
        set: open.number,
        hook: place(open.ended),
        outcome: verdict(record.outcome),
        exit,
        started: match record.way {
            Way::Spawned => Started::Spawned,
            Way::Prestarted => Started::Prestarted,
            Way::Forked => Started::Forked,
            Way::Warm => Started::Warm,
        },
        remarks: Remarks {
            slow: record.slow,
            changed: record.changed,
            left_behind: record.left_behind,
        },
        pid: record.pid,
        retries: record.retries,
        at_us: record.at_us.saturating_sub(open.begun_us),
        wall_us: record.wall_us,
        usage: record.usage.map(|usage| Usage {
            user_us: usage.user_us,
            system_us: usage.system_us,
            peak_kib: usage.peak_kib,
        }),
        reason: record.reason.map_or_else(Vec::new, |reason| reason.code().into()),
        trouble: record.trouble.map_or_else(Vec::new, |trouble| code(trouble).into()),
        text: record.message.clone().map_or_else(Vec::new, String::into_bytes),
        stdout: stream(&record.stdout),
        stderr: stream(&record.stderr),
    }
}

fn stream(capture: &Capture) -> Stream {
    let stamps = capture.chunks.iter().take(STAMPS_MAX).map(|chunk| (chunk.at_ns, chunk.bytes));
    Stream { total: capture.total, cut: capture.cut, stamps: stamps.collect() }
}

/// A set has ended.
pub(super) fn set_ended(open: Open, record: &SetRecord, outcome: HookOutcome) {
    let ended = SetEnded {
        set: open.number,
        outcome: verdict(outcome),
        wall_us: record.wall_us,
        not_run: record.not_run.iter().map(|name| &name.0).collect(),
        text: record.message.clone().map_or_else(Vec::new, String::into_bytes),
    };
    let mut bytes = open.last;
    if frame::append(&mut bytes, Kind::SetEnded, 0, |out| ended.encode(out)).is_err() {
        let ended = SetEnded { not_run: Strings::new(), ..ended };
        let _ = frame::append(&mut bytes, Kind::SetEnded, 0, |out| ended.encode(out));
    }
    open.outlet.send(Some(bytes));
}

fn place(hook: usize) -> u32 {
    u32::try_from(hook).unwrap_or(u32::MAX)
}

fn verdict(outcome: HookOutcome) -> Verdict {
    match outcome {
        HookOutcome::Ok => Verdict::Ok,
        HookOutcome::Warning => Verdict::Warning,
        HookOutcome::Interrupt => Verdict::Interrupt,
        HookOutcome::Error => Verdict::Error,
        HookOutcome::Timeout => Verdict::Timeout,
        HookOutcome::SystemError => Verdict::SystemError,
        HookOutcome::Cancelled => Verdict::Cancelled,
    }
}

/// As in JSON.
fn code(trouble: Trouble) -> &'static str {
    match trouble {
        Trouble::Gone => "gone",
        Trouble::Permission => "permission",
        Trouble::NoInterpreter => "no-interpreter",
        Trouble::Format => "format",
        Trouble::Busy => "busy",
        Trouble::TooLarge => "too-large",
        Trouble::Resources => "resources",
        Trouble::Other => "other",
    }
}
