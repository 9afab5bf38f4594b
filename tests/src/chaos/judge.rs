//! What a call may have come to, by its caller and its fault.

use std::path::Path;

use rustix::process::Signal;

use super::draw::Draw;
use super::fault::Takes;
use super::program::Call;
use super::{Report, Round};
use crate::World;
use crate::run::{End, Outcome, Run, Running, read};

/// Who calls, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    Plain,
    /// Its stdout is a pipe to another program.
    Pipe,
    /// It has a time that is long enough.
    Timeout,
    /// It is killed on the way.
    Killed,
    /// It is asked to end on the way.
    Terminated,
}

/// How a call ended, within the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Right,
    Lost,
    Killed,
}

impl Caller {
    pub(super) const ALL: [Caller; 8] = [
        Caller::Plain,
        Caller::Plain,
        Caller::Plain,
        Caller::Plain,
        Caller::Pipe,
        Caller::Timeout,
        Caller::Killed,
        Caller::Terminated,
    ];

    /// The command that this caller makes of a call.
    pub(super) fn wrap(self, world: &World, run: Run) -> Run {
        match self {
            Caller::Plain | Caller::Killed | Caller::Terminated => run,
            Caller::Timeout => {
                let mut words = run.command_line();
                words.splice(2..2, ["--timeout".into(), "20s".into()]);
                world.run(&words)
            }
            // The shell tells a death by a signal as 128 and its number.
            Caller::Pipe => run.under(&["bash", "-c", "set -o pipefail; \"$@\" | cat", "bash"]),
        }
    }

    /// What it does while its call runs.
    pub(super) fn act(self, running: &Running, draw: &mut Draw) {
        let signal = match self {
            Caller::Plain | Caller::Pipe | Caller::Timeout => return,
            Caller::Killed => Signal::KILL,
            Caller::Terminated => Signal::TERM,
        };
        super::fault::pause_us(draw.below(20_000));
        running.signal(signal);
    }
}

/// Judges one call.
pub(super) fn judge(round: Round, call: &Call, outcome: &Outcome) -> Result<Ended, String> {
    let effects = read(&call.effects);
    let begun = effects.iter().filter(|byte| **byte == b'b').count();
    if begun > 1 {
        return Err(format!("the program began {begun} times"));
    }
    let (end, out) = round.kind.expected(&call.token);
    if as_seen(round.caller, outcome.end) == as_seen(round.caller, end)
        && outcome.text() == out
        && begun == 1
    {
        // A traceback is the program's own; hob has nothing to say.
        let said = outcome.complaint();
        let ours = said.lines().any(|line| line.starts_with("hob: "));
        return if ours {
            Err("a right call with a complaint".to_owned())
        } else {
            Ok(Ended::Right)
        };
    }
    let signal =
        |number| as_seen(round.caller, outcome.end) == as_seen(round.caller, End::Signal(number));
    match round.caller {
        Caller::Killed if signal(9) => return Ok(Ended::Killed),
        Caller::Terminated if signal(15) => return Ok(Ended::Killed),
        Caller::Killed | Caller::Terminated | Caller::Plain | Caller::Pipe | Caller::Timeout => {}
    }
    match round.fault.takes() {
        Takes::Nothing => Err("not what the program does".to_owned()),
        Takes::Calls if outcome.end == End::Code(125) => {
            let said = outcome.complaint();
            let lines: Vec<_> = said.lines().filter(|line| line.starts_with("hob: ")).collect();
            match lines.as_slice() {
                [line] if line.contains(": lost: ") => Ok(Ended::Lost),
                _ => Err("lost without one line".to_owned()),
            }
        }
        Takes::Workers if signal(9) => Ok(Ended::Killed),
        Takes::Calls | Takes::Workers => Err("not what the fault can do".to_owned()),
    }
}

/// An end as this caller sees it.
fn as_seen(caller: Caller, end: End) -> End {
    match (caller, end) {
        (Caller::Pipe, End::Signal(number)) => End::Code(128 + number),
        (_, end) => end,
    }
}

/// No program of any round may have begun twice, also not after its call had ended.
pub(super) fn effects_at_the_end(world: &World, report: &mut Report) {
    for entry in std::fs::read_dir(world.path("effects")).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.file_name() != Some("warms".as_ref()) && begun(&path) > 1 {
            report.wrong += 1;
            report.tell(format!("wrong: {}: it began {} times", path.display(), begun(&path)));
        }
    }
}

fn begun(path: &Path) -> usize {
    read(path).iter().filter(|byte| **byte == b'b').count()
}
