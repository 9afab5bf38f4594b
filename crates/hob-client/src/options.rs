//! By which name hob was started, and the options of `hob run`, by hand: they stand before the program, and everything from the
//! program on belongs to it.

use std::ffi::CStr;

use hob_os::start::Start;
use hob_wire::call::{Asked, Isolation, Purpose};
use rustix::fs::CWD;

/// By which name hob was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalledAs {
    /// `hob run PROGRAM`.
    Hob,
    /// A shim: a link to hob under the program's name.
    Shim,
}

impl CalledAs {
    /// By a link under another name than the file's, it is a shim. A copy of hob is hob, whatever
    /// it is called: one that was put aside must not take its own name for a program's.
    #[must_use]
    pub fn of(start: &Start) -> CalledAs {
        let name = start.argv.first().map_or(&b""[..], |name| base_name(name.to_bytes()));
        if name.is_empty() || hob_resolve::is_hob(name) {
            return CalledAs::Hob;
        }
        let mut room = [0; 4096];
        let own = rustix::fs::readlinkat_raw(CWD, c"/proc/self/exe", &mut room[..]);
        let own = own.ok().and_then(|len| room.get(..len)).map(base_name);
        if own == Some(name) { CalledAs::Hob } else { CalledAs::Shim }
    }
}

/// The last component of a path.
pub(crate) fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// A parsed `hob run`.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// By which name.
    pub called: CalledAs,
    /// What travels with the call.
    pub asked: Asked,
    /// `--status-fd`: where one JSON line with the outcome goes.
    pub status_fd: Option<u32>,
    /// The index in argv of the program (or of `-m`); a shim's is its own name.
    pub program: usize,
}

/// A parse that ended otherwise.
#[derive(Debug, PartialEq, Eq)]
pub enum NotRun {
    /// `--help`: the verbs' help knows.
    Help,
    /// It names a session, or how a script runs in one: the verbs know of sessions.
    Session,
    /// An option that there is not, by its index in argv: the verbs know what is near to it.
    NoOption(usize),
    /// A mistake: the line to print, without `hob: `.
    Wrong(String),
}

/// Reads a length of time as milliseconds; an error is what is wrong with it.
pub type Milliseconds = fn(&str) -> Result<u64, &'static str>;

/// Parses `hob run OPTIONS PROGRAM ARGS`; `argv` is the whole of it.
pub fn parse(argv: &[&CStr], milliseconds: Milliseconds) -> Result<Options, NotRun> {
    let mut options = Options { called: CalledAs::Hob, program: 2, ..Options::of_shim() };
    loop {
        let Some(word) = argv.get(options.program).map(|word| word.to_bytes()) else {
            return Err(wrong("run: no program is named; as in `hob run black src`"));
        };
        if word == b"--" {
            options.program += 1;
            if argv.len() == options.program {
                return Err(wrong(
                    "run: no program is named after --; as in `hob run -- black src`",
                ));
            }
            return Ok(options);
        }
        if word == b"-m" && argv.len() == options.program + 1 {
            return Err(wrong("run: -m needs the name of a module; as in `hob run -m pytest -q`"));
        }
        if !word.starts_with(b"-") || word == b"-m" || word == b"-" {
            return Ok(options);
        }
        options.take(argv, word, milliseconds)?;
    }
}

impl Options {
    /// What a shim is called with: everything belongs to the program.
    #[must_use]
    pub fn of_shim() -> Options {
        Options { called: CalledAs::Shim, asked: Asked::default(), status_fd: None, program: 0 }
    }

    /// Takes the option at `self.program`, and moves past it and its value.
    fn take(
        &mut self,
        argv: &[&CStr],
        word: &[u8],
        milliseconds: Milliseconds,
    ) -> Result<(), NotRun> {
        let (name, attached) = match word.iter().position(|byte| *byte == b'=') {
            Some(at) => (&word[..at], Some(&word[at + 1..])),
            None => (word, None),
        };
        match (name, attached) {
            (b"--help" | b"-h", None) => return Err(NotRun::Help),
            (b"--cold", None) => {
                self.asked.cold = true;
                self.program += 1;
                return Ok(());
            }
            _ => {}
        }
        let sessions: [&[u8]; 4] = [b"-S", b"--session", b"--keep", b"--cp"];
        if sessions.contains(&name) || name.starts_with(b"-S") {
            return Err(NotRun::Session);
        }
        let known: [&[u8]; 5] =
            [b"--isolation", b"--timeout", b"--ahead", b"--status-fd", b"--purpose"];
        if !known.contains(&name) {
            return Err(NotRun::NoOption(self.program));
        }
        let value = match attached {
            Some(value) => value,
            None => {
                self.program += 1;
                let Some(value) = argv.get(self.program) else {
                    let shown = String::from_utf8_lossy(word);
                    let text = format!("run: {shown} needs a value; `hob help run` shows which");
                    return Err(wrong(text));
                };
                value.to_bytes()
            }
        };
        self.program += 1;
        self.set(name, value, milliseconds)
    }

    fn set(&mut self, name: &[u8], value: &[u8], milliseconds: Milliseconds) -> Result<(), NotRun> {
        let text = std::str::from_utf8(value).unwrap_or("");
        let bad = |why: &str| {
            let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
            wrong(format!("run: {name} {value}: {why}"))
        };
        match name {
            b"--isolation" => {
                self.asked.isolation = match text {
                    "spawn" => Isolation::Spawn,
                    "standby" => Isolation::Standby,
                    "fork" => Isolation::Fork,
                    _ => return Err(bad("it is one of spawn, standby, fork")),
                };
            }
            b"--timeout" => {
                self.asked.timeout_ms = milliseconds(text).map_err(&bad)?;
            }
            b"--ahead" => {
                let ahead = text.parse().ok().filter(|ahead| *ahead <= AHEAD_MAX);
                self.asked.ahead = ahead.ok_or_else(|| bad("it is a number from 0 to 64"))?;
            }
            b"--purpose" => {
                let purposes = [Purpose::Verify, Purpose::Ab, Purpose::Check];
                let named = purposes.into_iter().find(|purpose| purpose.word() == Some(text));
                self.asked.purpose = named.ok_or_else(|| bad("it is one of verify, ab, check"))?;
            }
            _ => {
                let fd = text.parse().ok().filter(|fd| *fd <= i32::MAX.unsigned_abs());
                self.status_fd = Some(fd.ok_or_else(|| {
                    bad("it is the number of an open descriptor, as in `--status-fd 3 3>outcome`")
                })?);
            }
        }
        Ok(())
    }
}

/// The most copies that a caller may ask for.
const AHEAD_MAX: u32 = 64;

fn wrong(text: impl Into<String>) -> NotRun {
    NotRun::Wrong(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    fn parsed(words: &[&str]) -> Result<Options, NotRun> {
        let owned: Vec<_> =
            ["hob", "run"].iter().chain(words).map(|w| CString::new(*w).unwrap()).collect();
        let milliseconds = |text: &str| match text {
            "1.5s" => Ok(1500),
            _ => Err("is no time"),
        };
        parse(&owned.iter().map(CString::as_c_str).collect::<Vec<_>>(), milliseconds)
    }

    #[test]
    fn options_end_where_the_program_begins() {
        let options =
            parsed(&["--cold", "--timeout=1.5s", "--ahead", "0", "x.py", "--cold"]).unwrap();
        assert_eq!(options.program, 6);
        assert!(options.asked.cold);
        assert_eq!((options.asked.timeout_ms, options.asked.ahead), (1500, 0));
        assert_eq!(parsed(&["-m", "json.tool", "--cold"]).unwrap().program, 2);
        assert_eq!(parsed(&["--", "--odd"]).unwrap().program, 3);
        assert_eq!(parsed(&["--status-fd", "7", "x"]).unwrap().status_fd, Some(7));
    }

    #[test]
    fn each_mistake_is_named() {
        for words in [
            &[][..],
            &["--"],
            &["-m"],
            &["--isolation"],
            &["--isolation", "jail", "x"],
            &["--timeout", "soon", "x"],
            &["--timeout", "0", "x"],
            &["--timeout", "5", "x"],
            &["--ahead", "65", "x"],
            &["--status-fd", "-1", "x"],
            &["--colder", "x"],
            &["--cold=1", "x"],
        ] {
            let refused = matches!(parsed(words), Err(NotRun::Wrong(_) | NotRun::NoOption(2)));
            assert!(refused, "{words:?}");
        }
        assert_eq!(parsed(&["--help"]), Err(NotRun::Help));
    }
}
