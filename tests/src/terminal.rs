//! A pseudo-terminal with a process in it, as a terminal window has one.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::bytes::contains;
use crate::run::{End, Run};
use crate::wait;
use crate::world::World;

/// What a script of [`Terminal::called`] begins with: it can be called for nothing but warmth; and
/// a key that is pressed in a program's very first moment may reach it twice.
const PRELUDE: &str =
    "import sys\nif sys.argv[1:] == ['warm-up']:\n    sys.exit()\nimport time\ntime.sleep(0.01)\n";

/// A shell that leads the session, as somebody's login shell does, and calls the program twice:
/// until such a call is warm, and then once more, for the test.
const LEADER: &str = r#"
hob=$1 script=$2 n=0; shift 2
while [ "$hob" ] && [ $n -lt 400 ]; do
  "$hob" run "$script" warm-up </dev/null
  "$hob" last --json | grep -q '"warm": *true' && break
  n=$((n + 1))
done
echo GO
"$@"
exit $?
"#;

/// How a program is called in a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Called {
    /// By the interpreter itself.
    Cold,
    /// By hob, warm.
    Warm,
}

/// A terminal and the process that leads its session.
#[derive(Debug)]
pub struct Terminal {
    controller: OwnedFd,
    child: Child,
    /// Everything that was shown.
    shown: Vec<u8>,
    /// How much of it has been expected.
    seen: usize,
}

impl Terminal {
    /// Opens a terminal and starts the command in it: a session of its own, this terminal as its
    /// controlling one and as its stdin, stdout and stderr.
    ///
    /// # Panics
    /// When the system has no pseudo-terminal.
    #[must_use]
    pub fn open(run: &Run) -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let controller = openpt(flags).expect("a pseudo-terminal can be opened");
        grantpt(&controller).and_then(|()| unlockpt(&controller)).expect("it can be unlocked");
        let name = ptsname(&controller, Vec::new()).expect("it has a name");
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let user =
            rustix::fs::open(name, flags, Mode::empty()).expect("its other end can be opened");
        tcsetwinsize(&user, size).expect("it has a size");
        let mut command = Command::new("setsid");
        command.arg("--ctty").args(run.command_line());
        command.env_clear().envs(run.environment().iter().cloned()).current_dir(run.directory());
        let copy = || Stdio::from(user.try_clone().expect("a descriptor is free"));
        command.stdin(copy()).stdout(copy()).stderr(copy());
        let _alone = crate::alone();
        let child = command.spawn().expect("setsid is there");
        Terminal { controller, child, shown: Vec::new(), seen: 0 }
    }

    /// Opens a terminal in which a shell calls this Python program, and waits until it is about to.
    #[must_use]
    pub fn called(world: &World, script: &str, text: &str, how: Called) -> Terminal {
        world.file(script, format!("{PRELUDE}{text}"));
        let hob = world.binary().to_string_lossy().into_owned();
        let (first, words) = match how {
            Called::Cold => ("", vec!["python3", script]),
            Called::Warm => (hob.as_str(), vec![hob.as_str(), "run", script]),
        };
        let run = world.run(&["sh", "-c", LEADER, "sh", first, script]).args(&words);
        let mut terminal = Terminal::open(&run);
        terminal.expect("GO\r\n");
        terminal
    }

    /// The process that leads the session.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Types something.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn keys(&self, text: &str) {
        let mut bytes = text.as_bytes();
        while !bytes.is_empty() {
            let count =
                rustix::io::write(&self.controller, bytes).expect("the terminal takes keys");
            bytes = &bytes[count..];
        }
    }

    /// Changes the window's size.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.controller, size).expect("the terminal can be resized");
    }

    /// Waits until this is shown, after what was expected before.
    ///
    /// # Panics
    /// When it does not come.
    pub fn expect(&mut self, text: &str) {
        let start = Instant::now();
        loop {
            let rest = &self.shown[self.seen..];
            if let Some(at) = rest.windows(text.len()).position(|window| window == text.as_bytes())
            {
                self.seen += at + text.len();
                return;
            }
            let open = self.read();
            assert!(
                open && start.elapsed() < wait::LONG,
                "{text:?} was not shown after {:?}; shown: {}",
                String::from_utf8_lossy(&self.shown[..self.seen]),
                String::from_utf8_lossy(&self.shown[self.seen..])
            );
        }
    }

    /// Reads what is shown, waiting a little for it; `false` when the terminal was closed.
    fn read(&mut self) -> bool {
        if !wait::readable(&self.controller, Duration::from_millis(50)) {
            return true;
        }
        let mut buffer = [0; 4096];
        match rustix::io::read(&self.controller, &mut buffer) {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.shown.extend_from_slice(&buffer[..count]);
                true
            }
        }
    }

    /// Waits until the process has ended; how, and everything that was shown.
    ///
    /// # Panics
    /// When it does not end.
    #[must_use]
    pub fn finish(mut self) -> (End, Vec<u8>) {
        assert!(self.ends_within(wait::LONG), "it did not end: {}", self.text());
        self.ended()
    }

    /// The same; what has not ended by then is killed.
    #[must_use]
    pub fn finish_or_kill(mut self, bound: Duration) -> (End, Vec<u8>) {
        if !self.ends_within(bound) {
            let _ = self.child.kill();
        }
        self.ended()
    }

    /// Whether it ends in time. Its output is read meanwhile: a full terminal holds the process.
    fn ends_within(&mut self, bound: Duration) -> bool {
        let start = Instant::now();
        while !wait::ended(self.child.id(), Duration::ZERO) {
            self.read();
            if start.elapsed() >= bound {
                return false;
            }
        }
        true
    }

    fn ended(mut self) -> (End, Vec<u8>) {
        use std::os::unix::process::ExitStatusExt;
        let status = self.child.wait().expect("a child can be waited for");
        while wait::readable(&self.controller, Duration::ZERO) && self.read() {}
        let end = status.code().map_or(End::Signal(status.signal().unwrap_or(0)), End::Code);
        (end, std::mem::take(&mut self.shown))
    }

    /// What was shown so far, as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown).into_owned()
    }

    /// Whether this was shown so far.
    #[must_use]
    pub fn has(&self, text: &str) -> bool {
        contains(&self.shown, text.as_bytes())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
