//! The faults, their moments, and what is put right after them.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::draw::Draw;
use super::program::{Kind, Programs};
use crate::run::{Running, kill, read};
use crate::{World, leftovers, wait};

/// How long a stopped process stays so, at most.
pub(super) const STOPPED_MAX: Duration = Duration::from_millis(300);

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    DaemonKilled,
    DaemonStopped,
    ZygotesKilled,
    ZygotesStopped,
    WorkersKilled,
    WorkersStopped,
    AllKilled,
    SocketRemoved,
    DirectoryRemoved,
    RuntimeRemoved,
    StopAsked,
    Restarted,
    ScriptsTouched,
    ManyCallers,
    Nonsense,
}

/// What a fault may take from a call that was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    /// The call may be lost.
    Calls,
    /// The program may be killed.
    Workers,
}

impl Fault {
    pub(super) const ALL: [Fault; 16] = [
        Fault::None,
        Fault::DaemonKilled,
        Fault::DaemonStopped,
        Fault::ZygotesKilled,
        Fault::ZygotesStopped,
        Fault::WorkersKilled,
        Fault::WorkersStopped,
        Fault::AllKilled,
        Fault::SocketRemoved,
        Fault::DirectoryRemoved,
        Fault::RuntimeRemoved,
        Fault::StopAsked,
        Fault::Restarted,
        Fault::ScriptsTouched,
        Fault::ManyCallers,
        Fault::Nonsense,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Fault::None => "no fault",
            Fault::DaemonKilled => "daemon killed",
            Fault::DaemonStopped => "daemon stopped",
            Fault::ZygotesKilled => "zygotes killed",
            Fault::ZygotesStopped => "zygotes stopped",
            Fault::WorkersKilled => "workers killed",
            Fault::WorkersStopped => "workers stopped",
            Fault::AllKilled => "daemon, zygotes and workers killed",
            Fault::SocketRemoved => "socket removed",
            Fault::DirectoryRemoved => "directory removed",
            Fault::RuntimeRemoved => "runtime file removed",
            Fault::StopAsked => "hob stop",
            Fault::Restarted => "hob restart",
            Fault::ScriptsTouched => "scripts touched",
            Fault::ManyCallers => "thirty callers",
            Fault::Nonsense => "nonsense on the socket",
        }
    }

    pub(super) fn takes(self) -> Takes {
        match self {
            Fault::DaemonKilled | Fault::ZygotesKilled | Fault::AllKilled => Takes::Calls,
            Fault::WorkersKilled => Takes::Workers,
            Fault::None
            | Fault::DaemonStopped
            | Fault::ZygotesStopped
            | Fault::WorkersStopped
            | Fault::SocketRemoved
            | Fault::DirectoryRemoved
            | Fault::RuntimeRemoved
            | Fault::StopAsked
            | Fault::Restarted
            | Fault::ScriptsTouched
            | Fault::ManyCallers
            | Fault::Nonsense => Takes::Nothing,
        }
    }
}

/// When a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// Before the call is made.
    Before,
    /// So many microseconds after its client was started.
    After(u64),
    /// When the program has begun.
    Begun,
}

impl Moment {
    pub(super) fn draw(draw: &mut Draw) -> Moment {
        match draw.below(6) {
            0 => Moment::Before,
            1 => Moment::Begun,
            2 => Moment::After(draw.below(1_000)),
            3 => Moment::After(draw.below(4_000)),
            4 => Moment::After(draw.below(15_000)),
            _ => Moment::After(draw.below(80_000)),
        }
    }

    /// Waits for the moment.
    pub(super) fn wait(self, effects: &Path) {
        match self {
            Moment::Before => {}
            Moment::After(us) => pause_us(us),
            Moment::Begun => {
                // A program that never begins is judged by its outcome.
                let bound = Duration::from_millis(500);
                let _ = wait::look(bound, || (!read(effects).is_empty()).then_some(()));
            }
        }
    }
}

/// Lets time pass, exactly: a sleep is not fine enough for these moments.
pub(super) fn pause_us(us: u64) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_micros(us) {
        std::thread::yield_now();
    }
}

/// The processes of hob's as they were when the round began.
#[derive(Debug, Default)]
pub(super) struct Victims {
    daemon: Option<u32>,
    zygotes: Vec<u32>,
    workers: Vec<u32>,
}

impl Victims {
    /// Looks for them, if the fault needs any.
    pub(super) fn look(world: &World, fault: Fault) -> Victims {
        let needed = match fault {
            Fault::DaemonKilled
            | Fault::DaemonStopped
            | Fault::ZygotesKilled
            | Fault::ZygotesStopped
            | Fault::WorkersKilled
            | Fault::WorkersStopped
            | Fault::AllKilled => true,
            Fault::None
            | Fault::SocketRemoved
            | Fault::DirectoryRemoved
            | Fault::RuntimeRemoved
            | Fault::StopAsked
            | Fault::Restarted
            | Fault::ScriptsTouched
            | Fault::ManyCallers
            | Fault::Nonsense => false,
        };
        if !needed {
            return Victims::default();
        }
        let Some(daemon) = world.daemon_if_any() else { return Victims::default() };
        let processes = leftovers::processes(&world.path(""));
        let children = |of: &[u32]| -> Vec<u32> {
            let ours = |pid: &u32| leftovers::parent(*pid).is_some_and(|one| of.contains(&one));
            processes.iter().map(|one| one.0).filter(ours).collect()
        };
        let zygotes = children(&[daemon]);
        let workers = children(&zygotes);
        Victims { daemon: Some(daemon), zygotes, workers }
    }

    fn of(&self, fault: Fault) -> Vec<u32> {
        let daemon = || self.daemon.into_iter().collect::<Vec<_>>();
        match fault {
            Fault::DaemonKilled | Fault::DaemonStopped => daemon(),
            Fault::ZygotesKilled | Fault::ZygotesStopped => self.zygotes.clone(),
            Fault::WorkersKilled | Fault::WorkersStopped => self.workers.clone(),
            Fault::AllKilled => [daemon(), self.zygotes.clone(), self.workers.clone()].concat(),
            Fault::None
            | Fault::SocketRemoved
            | Fault::DirectoryRemoved
            | Fault::RuntimeRemoved
            | Fault::StopAsked
            | Fault::Restarted
            | Fault::ScriptsTouched
            | Fault::ManyCallers
            | Fault::Nonsense => Vec::new(),
        }
    }
}

/// Lets the fault happen, now.
///
/// Gives the command that was started for it, whose end is waited for after the round.
pub(super) fn strike(
    world: &World,
    fault: Fault,
    victims: &Victims,
    draw: &mut Draw,
) -> Option<Running> {
    let signal = |signal| victims.of(fault).into_iter().for_each(|pid| kill(pid, signal));
    match fault {
        Fault::None => {}
        Fault::DaemonKilled | Fault::ZygotesKilled | Fault::WorkersKilled | Fault::AllKilled => {
            signal(Signal::KILL);
        }
        Fault::DaemonStopped | Fault::ZygotesStopped | Fault::WorkersStopped => {
            signal(Signal::STOP);
        }
        Fault::SocketRemoved => _ = std::fs::remove_file(world.hob_dir().join("socket")),
        Fault::DirectoryRemoved => _ = std::fs::remove_dir_all(world.hob_dir()),
        Fault::RuntimeRemoved => _ = std::fs::remove_file(world.hob_dir().join("worker.py")),
        Fault::StopAsked => return Some(world.hob(&["stop"]).start()),
        Fault::Restarted => return Some(world.hob(&["restart"]).start()),
        Fault::ScriptsTouched => Programs::touch(world),
        Fault::ManyCallers => {}
        Fault::Nonsense => nonsense(world, draw),
    }
    None
}

/// Says something to the daemon that no client says, and leaves.
fn nonsense(world: &World, draw: &mut Draw) {
    use std::io::Write;
    let Ok(mut socket) = std::os::unix::net::UnixStream::connect(world.hob_dir().join("socket"))
    else {
        return;
    };
    let words: [&[u8]; 4] = [b"", b"GET / HTTP/1.1\r\n\r\n", b"hob\x01\x01", &[0xff; 64]];
    // The daemon may hang up at once.
    let _ = socket.write_all(draw.pick(&words));
}

/// Lets what was stopped go on.
pub(super) fn undo(fault: Fault, victims: &Victims) {
    if matches!(fault, Fault::DaemonStopped | Fault::ZygotesStopped | Fault::WorkersStopped) {
        victims.of(fault).into_iter().for_each(|pid| kill(pid, Signal::CONT));
    }
}

/// Waits until what was killed below a living daemon is reaped, for as long as hob may take to
/// come to rest. Until then the next round's call can be given to a copy of a killed zygote and be
/// lost, and that round's fault takes nothing.
pub(super) fn settle(fault: Fault, victims: &Victims) {
    if !matches!(fault, Fault::ZygotesKilled | Fault::WorkersKilled) {
        return;
    }
    let killed = victims.of(fault);
    let gone = |pid: &u32| !Path::new(&format!("/proc/{pid}")).exists();
    // What is never reaped is a leak, and is told as one.
    let _ = wait::look(super::leaks::REST, || killed.iter().all(gone).then_some(()));
}

/// What follows a round: thirty callers, each with its own answer.
pub(super) fn aftermath(
    world: &World,
    programs: &Programs,
    fault: Fault,
    round: usize,
) -> Result<(), String> {
    if fault != Fault::ManyCallers {
        return Ok(());
    }
    let calls: Vec<_> =
        (0..30).map(|n| programs.call(world, Kind::Plain, &format!("r{round}-{n}"))).collect();
    let running: Vec<Running> = calls.iter().map(|call| call.run.start()).collect();
    for (call, running) in calls.iter().zip(running) {
        let outcome = running.finish();
        let expected = Kind::Plain.expected(&call.token);
        if (outcome.end, outcome.text()) != expected || read(&call.effects) != b"be" {
            return Err(format!("one of thirty callers: {outcome:?}"));
        }
    }
    Ok(())
}
