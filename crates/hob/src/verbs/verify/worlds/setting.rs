//! How each world is made: what is other in a run, in words for a person too, or why it cannot be.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use hob_os::process;
use hob_os::start::Start;
use hob_resolve::{Program, TargetKind};
use rustix::process::{Resource, getrlimit};

use super::super::change::{Change, Open, Order};
use super::super::ground::Ground;
use super::super::runs::Subject;
use super::{Arguments, Home, Link, Process, Reads, Variables, World};
use crate::verbs::repeated::input::{self, Input};

const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGQUIT: i32 = 3;
const SIGPIPE: i32 = 13;

/// What a program is given to read where its caller has given nothing.
const TEXT: &[u8] = b"one two three\n4 5 6\n{\"seven\": 8}\n";
/// Before it in a file of which a part has been read.
const BEFORE: &[u8] = b"a line that was read before\n";

/// The soft limit on open descriptors, where there were more.
const FILES: u64 = 256;
/// The soft limit on cores, where there were none.
const CORE: u64 = 4096;

/// Variables without which hob is not found, or would leave its lines elsewhere.
const HOBS: [&str; 5] = ["HOB", "HOB_DIR", "HOB_SHIM", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"];

/// A world that is ready to be tried.
pub(super) struct Setting {
    pub(super) subject: Subject,
    /// What is other.
    pub(super) varied: String,
    /// Whether time passes between its runs.
    pub(super) pause: Pause,
    /// A link that is moved before the runs.
    pub(super) moves: Option<Moves>,
}

/// Whether time passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    None,
    OverASecond,
}

/// A link, and where it leads when it has been moved.
pub(super) struct Moves {
    pub(super) link: PathBuf,
    pub(super) to: PathBuf,
}

/// What worlds are made from.
pub(super) struct Basis<'a> {
    pub(super) start: &'a Start,
    pub(super) program: &'a Program,
    pub(super) subject: &'a Subject,
    pub(super) ground: &'a Ground,
    /// The variables that the program asks for by name.
    pub(super) reads: Vec<String>,
}

/// A setting, or why there is none.
pub(super) type Prepared = Result<Setting, String>;

impl Basis<'_> {
    /// Makes a world.
    pub(super) fn prepare(&self, world: World) -> io::Result<Prepared> {
        match world {
            World::Input(reads) => self.input(reads),
            World::Environment(variables) => Ok(self.environment(variables)),
            World::Home(Home::Empty) => {
                Ok(Ok(self.home(self.ground.directory("home")?, "another HOME, empty")))
            }
            World::Home(Home::Site) => {
                let home = self.ground.home_with_site()?;
                Ok(Ok(self.home(home, "another HOME, with a site directory")))
            }
            World::Directory => self.directory(),
            World::Arguments(Arguments::Help) => Ok(self.help()),
            World::Arguments(Arguments::None) => Ok(self.bare()),
            World::Process(process) => Ok(self.process(process)),
            World::Link(link) => self.link(link),
            World::Time => Ok(Ok(Setting {
                pause: Pause::OverASecond,
                ..self.with("a second and more between runs", self.subject.clone())
            })),
        }
    }

    fn with(&self, varied: impl Into<String>, subject: Subject) -> Setting {
        Setting { subject, varied: varied.into(), pause: Pause::None, moves: None }
    }

    fn changed(&self, varied: impl Into<String>, change: Change) -> Setting {
        self.with(varied, Subject { change, ..self.subject.clone() })
    }

    fn input(&self, reads: Reads) -> io::Result<Prepared> {
        let given = match &self.subject.input {
            Input::File { path, .. } if path.is_file() => Some(input::content(path)?),
            // A device has no content that could be varied.
            Input::File { .. } | Input::Null | Input::Pipe(_) => None,
        };
        let (text, whose) = match &given {
            Some(text) => (text.as_slice(), "what was given"),
            None => (TEXT, "text of hob's"),
        };
        let from = |input: Input| Subject { input, ..self.subject.clone() };
        let pipe = |text: &[u8]| from(Input::Pipe(text.into()));
        Ok(Ok(match reads {
            Reads::Pipe => self.with(format!("a pipe, {whose}"), pipe(text)),
            Reads::Part | Reads::Null if given.is_none() => {
                return Ok(Err("no input was given".to_owned()));
            }
            Reads::Part => {
                let part = &text[..input::second_line(text)];
                self.with("a pipe, a part of what was given", pipe(part))
            }
            Reads::Null => self.with("/dev/null", from(Input::Null)),
            Reads::File => {
                let before = if given.is_some() { b"" } else { BEFORE };
                let path = self.ground.file("input-file", &[before, text].concat())?;
                let offset = if given.is_some() { input::second_line(text) } else { before.len() };
                let offset = offset as u64;
                self.with(format!("a file at byte {offset}"), from(Input::File { path, offset }))
            }
            Reads::Closed => {
                self.changed("closed", Change { input: Open::No, ..Change::default() })
            }
            Reads::Empty => self.with("an empty pipe", pipe(b"")),
        }))
    }

    fn environment(&self, variables: Variables) -> Prepared {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let change = Change::default();
        Ok(match variables {
            Variables::Read if self.reads.is_empty() => {
                return Err("no variable was seen to be asked for".to_owned());
            }
            Variables::Read => {
                let varied = format!("other values: {}", self.reads.join(" "));
                self.changed(varied, Change { other: self.reads.clone(), ..change })
            }
            Variables::Usual => {
                let is = |name: &[u8], value: &str| {
                    self.start.variable(name).is_some_and(|is| is == value.as_bytes())
                };
                let other = |name: &str, values: [&str; 2]| {
                    let value = values[usize::from(is(name.as_bytes(), values[0]))];
                    (name.to_owned(), value.to_owned())
                };
                let mut set = vec![
                    other("TZ", ["UTC+5", "UTC-3"]),
                    other("LANG", ["C", "C.UTF-8"]),
                    other("TERM", ["vt100", "dumb"]),
                    other("COLUMNS", ["61", "97"]),
                ];
                if self.start.variable(b"LC_ALL").is_some() {
                    set.push(other("LC_ALL", ["C", "C.UTF-8"]));
                }
                self.changed("other TZ, LANG, TERM, COLUMNS", Change { set, ..change })
            }
            Variables::Order => {
                self.changed("the last variable first", Change { order: Order::Reversed, ..change })
            }
            Variables::Small => {
                let only = [&HOBS[..], &["PATH", "HOME"]].concat();
                self.changed("PATH, HOME and hob's", Change { only: Some(names(&only)), ..change })
            }
            Variables::Added => {
                let set = vec![("VERIFY_ADDED".to_owned(), "1".to_owned())];
                self.changed("VERIFY_ADDED=1", Change { set, ..change })
            }
        })
    }

    fn home(&self, home: PathBuf, which: &str) -> Setting {
        let removed = ["XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"];
        let change = Change {
            set: vec![("HOME".to_owned(), home.to_string_lossy().into_owned())],
            removed: removed.iter().map(|name| (*name).to_owned()).collect(),
            ..Change::default()
        };
        self.changed(which, change)
    }

    fn directory(&self) -> io::Result<Prepared> {
        let words = match relocated(&self.subject.words, &self.subject.directory, self.program) {
            Ok(words) => words,
            Err(why) => return Ok(Err(why)),
        };
        let directory = self.ground.directory("elsewhere")?;
        let moved = words.iter().zip(&self.subject.words).filter(|(new, old)| new != old).count();
        let paths = match moved {
            0 => String::new(),
            1 => ", 1 path made absolute".to_owned(),
            count => format!(", {count} paths made absolute"),
        };
        let subject = Subject { words, directory, ..self.subject.clone() };
        Ok(Ok(self.with(format!("an empty one{paths}"), subject)))
    }

    fn help(&self) -> Prepared {
        let arguments = &self.subject.words[1..];
        if arguments.iter().any(|word| word == "--help" || word == "-h") {
            return Err("`--help` is among the arguments".to_owned());
        }
        if arguments.iter().any(|word| word == "--") {
            return Err("behind `--` it would be a name".to_owned());
        }
        let words = [&self.subject.words[..], &[OsString::from("--help")]].concat();
        Ok(self.with("`--help` as one more", Subject { words, ..self.subject.clone() }))
    }

    fn bare(&self) -> Prepared {
        let own = if self.subject.words[0] == "-m" { 2 } else { 1 };
        if self.subject.words.len() <= own {
            return Err("there are none".to_owned());
        }
        let words = self.subject.words[..own].to_vec();
        Ok(self.with("none", Subject { words, ..self.subject.clone() }))
    }

    fn process(&self, which: Process) -> Prepared {
        let change = Change::default();
        Ok(match which {
            Process::Files => {
                let soft = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
                let files = if soft > FILES { FILES } else { (soft / 2).max(32) };
                let varied = format!("{files} open files, soft");
                self.changed(varied, Change { files: Some(files), ..change })
            }
            Process::Core => {
                let limit = getrlimit(Resource::Core);
                let most = limit.maximum.unwrap_or(u64::MAX);
                let core = if limit.current == Some(0) { CORE.min(most) } else { 0 };
                if limit.current == Some(core) {
                    return Err("it is 0 and cannot be raised".to_owned());
                }
                let varied = format!("a core of {core} bytes, soft");
                self.changed(varied, Change { core: Some(core), ..change })
            }
            Process::Hup => self.signals(&[SIGHUP], "SIGHUP"),
            Process::Int => self.signals(&[SIGINT, SIGQUIT], "SIGINT and SIGQUIT"),
            Process::Pipe => self.signals(&[SIGPIPE], "SIGPIPE"),
            Process::Umask => {
                let own = process::own_status().unwrap_or_default().umask;
                let umask = if own == 0o077 { 0o022 } else { 0o077 };
                self.changed(format!("{umask:03o}"), Change { umask: Some(umask), ..change })
            }
        })
    }

    fn signals(&self, numbers: &[i32], names: &str) -> Setting {
        let ignored = process::own_status().unwrap_or_default().ignored;
        // What is started here never has an ignored SIGPIPE: the standard library sees to that.
        let is_ignored = numbers[0] != SIGPIPE && ignored & (1 << (numbers[0] - 1)) != 0;
        let change = Change::default();
        if is_ignored {
            let heeded = numbers.to_vec();
            return self.changed(format!("{names} not ignored"), Change { heeded, ..change });
        }
        self.changed(format!("{names} ignored"), Change { ignored: numbers.to_vec(), ..change })
    }

    fn link(&self, which: Link) -> io::Result<Prepared> {
        let target = match linkable(self.program, self.subject) {
            Ok(target) => target,
            Err(why) => return Ok(Err(why)),
        };
        let ground = self.ground;
        let called = |link: &Path| {
            let mut words = self.subject.words.clone();
            words[0] = link.as_os_str().to_owned();
            Subject { words, ..self.subject.clone() }
        };
        if which == Link::Called {
            let link = ground.link("link", &target)?;
            return Ok(Ok(self.with("called through a link", called(&link))));
        }
        let to = ground.link("to", &target)?;
        let (from, varied) = if which == Link::Moved {
            (ground.link("from", &target)?, "a link that has led there another way")
        } else {
            (ground.stand_in(&target)?, "a link that has led to another script")
        };
        let link = ground.link("moved", &from)?;
        let setting = self.with(varied, called(&link));
        Ok(Ok(Setting { moves: Some(Moves { link, to }), ..setting }))
    }
}

/// The file by a link to which this program can be called.
fn linkable(program: &Program, subject: &Subject) -> Result<PathBuf, String> {
    if !program.is_hosted() {
        return Err("it is only executed".to_owned());
    }
    if program.target.kind == TargetKind::Module {
        return Err("a module is called by no path".to_owned());
    }
    let target = Path::new(OsStr::from_bytes(&program.target.name));
    if target.file_name() != Path::new(&subject.words[0]).file_name() {
        return Err("it is called by its interpreter".to_owned());
    }
    // In a copy of the directory it is the copy that is called.
    let here = subject.directory.join(&subject.words[0]);
    let relative = Path::new(&subject.words[0]).is_relative() && here.is_file();
    let file = if relative { here } else { target.to_owned() };
    Ok(file)
}

/// The words with which the same is meant from another directory; or why nobody can tell.
fn relocated(words: &[OsString], here: &Path, program: &Program) -> Result<Vec<OsString>, String> {
    let mut moved = words.to_vec();
    let mut arguments = 1;
    if words[0] == "-m" {
        let module = words.get(1).map(|name| name.to_string_lossy().into_owned());
        let first = module.unwrap_or_default();
        let first = first.split('.').next().unwrap_or_default();
        if here.join(first).exists() || here.join(format!("{first}.py")).exists() {
            return Err("its module is found from this directory".to_owned());
        }
        arguments = 2;
    } else if here.join(&words[0]).is_file() {
        let target = program.target.name.as_slice();
        // A command of the same name as a file here is found where commands are.
        if Path::new(OsStr::from_bytes(target)).file_name() == Path::new(&words[0]).file_name() {
            moved[0] = here.join(&words[0]).into_os_string();
        }
    }
    for (at, word) in words.iter().enumerate().skip(arguments) {
        let text = word.as_bytes();
        let value =
            text.iter().position(|byte| *byte == b'=').map_or(&b""[..], |at| &text[at + 1..]);
        let is_here = |name: &[u8]| {
            let path = Path::new(OsStr::from_bytes(name));
            !name.is_empty() && path.is_relative() && here.join(path).symlink_metadata().is_ok()
        };
        let number = at + 1 - arguments;
        if is_here(value) {
            return Err(format!("argument {number} may name a file here"));
        }
        if !is_here(text) {
            continue;
        }
        // A bare word that is a file too may be meant as a word.
        if text.starts_with(b"-") || !(text.contains(&b'/') || text.contains(&b'.')) {
            return Err(format!("argument {number} may name a file here"));
        }
        moved[at] = here.join(word).into_os_string();
    }
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_keep_their_meaning_elsewhere_and_what_may_be_one_stops_it() {
        let home = tempfile::tempdir().unwrap();
        let here = home.path();
        for name in ["prog", "data.txt", "word", "-x"] {
            std::fs::write(here.join(name), "").unwrap();
        }
        let file = here.join("prog").as_os_str().as_bytes().to_vec();
        let program = Program::exec(file, Vec::new(), None);
        let relocated = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            relocated(&words, here, &program)
        };
        let at = |name: &str| here.join(name).into_os_string();
        let expected = [at("prog"), at("data.txt"), "none".into(), "/abs".into(), at(".")];
        assert_eq!(relocated(&["prog", "data.txt", "none", "/abs", "."]).unwrap(), expected);
        for (words, number) in [
            (&["prog", "word"][..], 1),
            (&["prog", "-v", "--file=data.txt"], 2),
            (&["prog", "-x"], 1),
        ] {
            let why = format!("argument {number} may name a file here");
            assert_eq!(relocated(words).unwrap_err(), why);
        }
        assert!(relocated(&["-m", "word"]).is_err());
        assert_eq!(relocated(&["-m", "json.tool", "data.txt"]).unwrap()[2], at("data.txt"));
    }
}
