//! The programs that are called. Each leaves a `b` in a file of its call when it begins and an `e`
//! when it ends, and says so on stdout.

use std::path::PathBuf;
use std::time::Duration;

use crate::run::{End, Run};
use crate::{World, wait};

/// What a program does between its beginning and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Sleeps,
    ExitsWithThree,
    Floods,
    Forks,
    Reads,
    Raises,
    KillsItself,
    LeavesAChildWithItsStdout,
    Shell,
    New,
}

impl Kind {
    pub(super) const ALL: [Kind; 11] = [
        Kind::Plain,
        Kind::Sleeps,
        Kind::ExitsWithThree,
        Kind::Floods,
        Kind::Forks,
        Kind::Reads,
        Kind::Raises,
        Kind::KillsItself,
        Kind::LeavesAChildWithItsStdout,
        Kind::Shell,
        Kind::New,
    ];

    fn file(self) -> &'static str {
        match self {
            Kind::Plain | Kind::New => "plain.py",
            Kind::Sleeps => "sleeps.py",
            Kind::ExitsWithThree => "exits.py",
            Kind::Floods => "floods.py",
            Kind::Forks => "forks.py",
            Kind::Reads => "reads.py",
            Kind::Raises => "raises.py",
            Kind::KillsItself => "kills.py",
            Kind::LeavesAChildWithItsStdout => "leaves.py",
            Kind::Shell => "shell.sh",
        }
    }

    fn text(self) -> String {
        let does = match self {
            Kind::Plain | Kind::New | Kind::Shell => "pass",
            Kind::Sleeps => "time.sleep(0.05)",
            Kind::ExitsWithThree => "code = 3",
            Kind::Floods => "print('x' * 300000)",
            Kind::Forks => {
                "pids = [os.fork() for _ in range(2)]\nif 0 in pids: os._exit(0)\nfor pid in pids: os.waitpid(pid, 0)"
            }
            Kind::Reads => "print(len(sys.stdin.read()))",
            Kind::Raises => "raise RuntimeError('as it should')",
            Kind::KillsItself => "sys.stdout.flush(); os.kill(os.getpid(), 15)",
            Kind::LeavesAChildWithItsStdout => {
                "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(0.05)\n    os._exit(0)"
            }
        };
        format!(
            "import os, sys, time\ncode = 0\nf = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)\nos.write(f, b'b')\nprint('begun', sys.argv[2], flush=True)\n{does}\nprint('ended', sys.argv[2], flush=True)\nos.write(f, b'e')\nsys.exit(code)\n"
        )
    }

    /// What a whole run of it does.
    pub(super) fn expected(self, token: &str) -> (End, String) {
        let whole = |between: &str| format!("begun {token}\n{between}ended {token}\n");
        match self {
            Kind::Plain
            | Kind::New
            | Kind::Sleeps
            | Kind::Forks
            | Kind::LeavesAChildWithItsStdout
            | Kind::Shell => (End::Code(0), whole("")),
            Kind::ExitsWithThree => (End::Code(3), whole("")),
            Kind::Floods => (End::Code(0), whole(&format!("{}\n", "x".repeat(300_000)))),
            Kind::Reads => (End::Code(0), whole("0\n")),
            Kind::Raises => (End::Code(1), format!("begun {token}\n")),
            Kind::KillsItself => (End::Signal(15), format!("begun {token}\n")),
        }
    }
}

/// One call of a program.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) run: Run,
    pub(super) token: String,
    /// Where the program leaves its traces.
    pub(super) effects: PathBuf,
}

/// The programs, written.
#[derive(Debug)]
pub(super) struct Programs;

const SHELL: &str =
    "#!/bin/sh\nprintf b >>\"$1\"\necho begun $2\necho ended $2\nprintf e >>\"$1\"\n";

/// Writes the programs into the world.
pub(super) fn write(world: &World) -> Programs {
    for kind in Kind::ALL {
        if kind == Kind::Shell {
            world.executable(kind.file(), SHELL);
        } else {
            world.file(kind.file(), kind.text());
        }
    }
    std::fs::create_dir(world.path("effects")).expect("a folder can be made");
    Programs
}

impl Programs {
    /// Writes them again as they are: the same text, another file.
    pub(super) fn touch(world: &World) {
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Shell) {
            world.file("fresh", kind.text());
            let _ = std::fs::rename(world.path("work/fresh"), world.path("work").join(kind.file()));
        }
    }

    /// A call that leaves its traces under this token.
    pub(super) fn call(&self, world: &World, kind: Kind, token: &str) -> Call {
        let effects = world.path("effects").join(token);
        // Nobody has seen a new one before: the call is learned from.
        let file = if kind == Kind::New {
            let name = format!("new-{token}.py");
            world.file(&name, kind.text());
            name
        } else {
            kind.file().to_owned()
        };
        let program = if kind == Kind::Shell { "./shell.sh" } else { file.as_str() };
        let run =
            world.hob(&["run"]).args(&[program.as_ref(), effects.as_os_str(), token.as_ref()]);
        Call { run, token: token.to_owned(), effects }
    }

    /// Calls it until copies of it wait, or for long enough: a round may begin cold.
    pub(super) fn warm_up(&self, world: &World, kind: Kind) {
        if matches!(kind, Kind::Shell | Kind::New) {
            return;
        }
        for _ in 0..3 {
            let call = self.call(world, kind, "warms");
            let _ = call.run.go();
            let ready = wait::look(Duration::from_millis(150), || {
                let status = world.status_if_any()?;
                let pools = status["pools"].as_array()?.clone();
                let warm = pools
                    .iter()
                    .any(|pool| pool["program"] == kind.file() && pool["ready"].as_u64() > Some(0));
                warm.then_some(())
            });
            if ready.is_some() {
                return;
            }
        }
    }
}
