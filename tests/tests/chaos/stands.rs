//! A daemon that stands still: what its callers handed over, they take back whole. Whoever reads
//! a call's output sees its end while the daemon still stands, wherever it was stopped.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use hob_tests::run::{kill, read, state};
use hob_tests::terminal::Terminal;
use hob_tests::{End, Run, Running, World, wait};
use rustix::fd::AsFd;
use rustix::process::Signal;

const HELLO: &str = "import os\nopen('zygote', 'w').write(str(os.getppid()))\nprint('hello')\n";
/// The ends are judged by this: a daemon that held a pipe held it for as long as it stood.
const BOUND: Duration = Duration::from_secs(20);
/// Calls that are met by a stop at a moment of chance.
const CHANCES: u64 = 60;
/// And how many of them may be met between two certain system calls.
const HELD_MAX: u64 = 3;

/// A world with a warm program, and its call.
fn world() -> (World, Run) {
    let world = World::started();
    world.file("hello.py", HELLO);
    let run = world.hob(&["run", "hello.py"]);
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "hello\n"));
    (world, run)
}

/// A process that stands still until this is dropped.
struct Stopped(u32);

impl Stopped {
    fn stop(pid: u32) -> Stopped {
        kill(pid, Signal::STOP);
        wait::until("it is stopped", || (state(pid) == Some('T')).then_some(()));
        Stopped(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        kill(self.0, Signal::CONT);
    }
}

/// Somebody who waits for the end of a call's output, and not for a process.
#[derive(Debug, Clone, Copy)]
enum Reader {
    /// A shell's `$(...)`.
    Substitution,
    /// The next program of a pipeline.
    Pipeline,
    /// The same with a lock open, as `flock` and `make` leave one.
    WithALock,
}

impl Reader {
    const ALL: [Reader; 3] = [Reader::Substitution, Reader::Pipeline, Reader::WithALock];

    fn of(self, run: &Run) -> Run {
        let script = match self {
            Reader::Substitution => "x=$(\"$@\") && echo \"$x\"",
            Reader::Pipeline => "set -o pipefail; \"$@\" | cat",
            Reader::WithALock => "exec 9>lock; \"$@\" | cat",
        };
        run.clone().under(&["bash", "-c", script, "bash"])
    }
}

/// The call's reader has its end, and the daemon still stands.
fn ends(running: Running, daemon: u32, what: &str) {
    let outcome = running.finish_if_within(BOUND);
    assert_eq!(state(daemon), Some('T'), "{what}: it stands still");
    let Some(outcome) = outcome else {
        panic!("{what}: its reader waits for a daemon that stands")
    };
    assert_eq!((outcome.end, outcome.text()), (End::Code(0), "hello\n".into()), "{what}");
}

#[test]
fn who_reads_a_call_that_its_daemon_never_looked_at_sees_its_end() {
    let (world, run) = world();
    let daemon = world.daemon();
    let stopped = Stopped::stop(daemon);
    for reader in Reader::ALL {
        ends(reader.of(&run).start(), daemon, &format!("{reader:?}"));
    }
    let out = world.file("out", "");
    let outcome = run.clone().stdout(&out).start().finish_if_within(BOUND);
    assert_eq!(outcome.map(|outcome| outcome.end), Some(End::Code(0)), "to a file");
    assert_eq!(read(out), b"hello\n");
    let mut terminal = Terminal::open(&run);
    terminal.expect("hello");
    assert_eq!(terminal.finish().0, End::Code(0), "to a terminal");
    assert_eq!(state(daemon), Some('T'), "it stands still");
    drop(stopped);
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "hello\n"));
}

#[test]
fn who_polls_a_calls_output_sees_its_end() {
    let (world, run) = world();
    let daemon = world.daemon();
    let _stopped = Stopped::stop(daemon);
    let words = run.command_line();
    let mut command = Command::new(&words[0]);
    command.arg0(&words[0]).args(&words[1..]).env_clear();
    command.envs(run.environment().iter().cloned()).current_dir(run.directory());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = {
        let _alone = hob_tests::alone();
        command.spawn().unwrap()
    };
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let mut said = Vec::new();
    loop {
        assert!(wait::readable(out.as_fd(), BOUND), "its stdout is held");
        let mut some = [0; 64];
        let count = out.read(&mut some).unwrap();
        if count == 0 {
            break;
        }
        said.extend_from_slice(&some[..count]);
    }
    assert!(wait::readable(err.as_fd(), BOUND), "its stderr is held");
    assert_eq!((said, err.read(&mut [0; 64]).unwrap()), (b"hello\n".to_vec(), 0));
    assert_eq!(state(daemon), Some('T'), "it stands still");
    assert!(child.wait().unwrap().success());
}

#[test]
fn whenever_a_daemon_is_stopped_its_callers_readers_see_the_end() {
    let (world, run) = world();
    let daemon = world.daemon();
    let (mut warm, mut held) = (0, 0);
    for chance in 0..CHANCES {
        let reader = Reader::ALL[usize::try_from(chance).unwrap() % Reader::ALL.len()];
        // Of a call whose copy waits, and of one for which a copy is forked.
        let words = if chance % 2 == 0 { &["run"][..] } else { &["run", "--ahead", "0"] };
        let call = world.hob(words).args(&["hello.py"]);
        let running = reader.of(&call).start();
        // sleeps: the moment is a chance; a shell and a client take some milliseconds to be there.
        std::thread::sleep(Duration::from_micros(chance * 7_919 % 12_000));
        let stopped = Stopped::stop(daemon);
        let what = format!("{reader:?}, chance {chance}");
        if wait::ended(running.pid(), BOUND) {
            ends(running, daemon, &what);
            drop(stopped);
        } else {
            // Between the system calls that take a call and give it, its daemon alone has it.
            held += 1;
            drop(stopped);
            let outcome = running.finish();
            assert_eq!((outcome.end, outcome.text()), (End::Code(0), "hello\n".into()), "{what}");
        }
        warm += usize::from(world.records(1).iter().any(|record| record["warm"] == true));
    }
    assert!(warm > 0, "no call of them was ever given");
    assert!(held <= HELD_MAX, "{held} of {CHANCES} calls were held");
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "hello\n"));
}

#[test]
fn a_call_that_waits_in_the_queue_of_a_daemon_that_is_stopped_runs_cold() {
    let (world, _) = world();
    let daemon = world.daemon();
    let zygote = read(world.path("work/zygote"));
    let zygote: u32 = String::from_utf8(zygote).unwrap().parse().unwrap();
    let held = Stopped::stop(zygote);
    // No copy is forked any more: calls are given ahead of their fork, and then they are queued.
    let call = world.hob(&["run", "--ahead", "0", "hello.py"]);
    let mut callers = Vec::new();
    wait::until("a call is queued", || {
        callers.push(Reader::Substitution.of(&call).start());
        (world.status()["calls"]["queued"].as_u64() > Some(0)).then_some(())
    });
    let stopped = Stopped::stop(daemon);
    let queued = callers.pop().expect("one was started");
    ends(queued, daemon, "the one that was queued");
    // Those that were given have their copies, whatever the daemon does.
    drop(held);
    for caller in callers {
        ends(caller, daemon, "one that was started before");
    }
    drop(stopped);
}
