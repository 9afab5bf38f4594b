//! Commands that no one here wrote, cold and through hob: is the result the same?
//!
//! Packages of the registry bring some two hundred commands in Python, and a system some twenty in
//! Ruby. Each is asked for its help, its version, and nothing; and some two hundred and forty, of
//! these packages and of as many others, do what they are for, in a small project that is made
//! anew before each run. Lists and project lie under `bench/same`. This owns which commands are
//! compared and what is told of them; how two runs are compared is in `compare`.

mod compare;
mod project;
mod run;

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Result;

use self::compare::{Both, Call};
use self::project::Project;
use super::{private, private_in};
use crate::Setting;
use crate::progress::Progress;
use crate::report::{Figure, Want};
use crate::venv;

const PROJECT: &str = include_str!("../../../same/project.txt");

/// Commands of one place.
struct Group {
    /// What `--only` may name it.
    parts: &'static [&'static str],
    bin: Place,
    /// What they do in the project, as `project::lines` reads it.
    work: &'static str,
    asked: Asked,
}

/// Where commands are.
enum Place {
    /// A virtual environment with these pins.
    Venv { name: &'static str, pins: &'static str },
    /// A directory of the system.
    System(&'static str),
}

/// Which commands are asked for their help, their version, and nothing.
enum Asked {
    /// Those of the place whose first line names an interpreter so.
    Named(&'static [u8]),
    None,
}

const GROUPS: [Group; 3] = [
    Group {
        parts: &["python"],
        bin: Place::Venv { name: "venv-same", pins: "requirements-same.txt" },
        work: include_str!("../../../same/python.txt"),
        asked: Asked::Named(b""),
    },
    Group {
        parts: &["python", "work"],
        bin: Place::Venv { name: "venv-same-work", pins: "requirements-same-work.txt" },
        work: include_str!("../../../same/work.txt"),
        asked: Asked::None,
    },
    Group {
        parts: &["ruby"],
        // Those of version managers are the same commands.
        bin: Place::System("/usr/bin"),
        work: include_str!("../../../same/ruby.txt"),
        asked: Asked::Named(b"ruby"),
    },
];

/// What came of all of them.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) compared: usize,
    pub(super) endless: usize,
    pub(super) unsteady: usize,
    pub(super) calls: usize,
    pub(super) warm: usize,
    pub(super) warmed: usize,
    /// Invocations that gave something else.
    pub(super) different: usize,
    /// How long each took, cold and warm, for a person to look at.
    pub(super) times: String,
    commands: usize,
    working: usize,
}

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let project = Project::read(PROJECT)?;
    let mut tally = Tally::default();
    for group in &GROUPS {
        if group.parts.iter().any(|part| setting.is_part(part)) {
            compare_all(setting, group, &project, &mut tally)?;
        }
    }
    let folder = setting.root.join("target/bench");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("same.txt"), &tally.times)?;
    let mut figure = Figure::new("same", "other people's commands: the same cold and through hob?");
    figure.fact("commands asked", count(tally.commands));
    figure.fact("commands that do their work", count(tally.working));
    figure.fact("invocations compared", count(tally.compared));
    figure.fact("left out: not ended after half a minute", count(tally.endless));
    figure.fact("in part left out: two cold runs differ", count(tally.unsteady));
    figure.fact("calls through hob", count(tally.calls));
    figure.fact("of these warm", count(tally.warm));
    figure.fact("invocations that became warm", count(tally.warmed));
    figure.target("invocations with another result", Want::AtMost(0.0), count(tally.different));
    Ok(figure)
}

/// Compares what one group does, and what it says when it is asked.
fn compare_all(
    setting: &Setting,
    group: &Group,
    project: &Project,
    tally: &mut Tally,
) -> Result<()> {
    let (bin, hob) = match group.bin {
        Place::Venv { name, pins } => {
            let venv = venv::make(&setting.root, name, pins)?;
            (venv.join("bin"), private_in(setting, &venv)?)
        }
        Place::System(bin) => (PathBuf::from(bin), private(setting, &[])?),
    };
    // A system need not have all of them; an environment has what its pins bring, or is wrong.
    let is_there = |words: &Vec<String>| match group.bin {
        Place::Venv { .. } => true,
        Place::System(_) => bin.join(&words[0]).is_file(),
    };
    let mut work: Vec<_> = project::lines(group.work).filter(is_there).collect();
    let mut names = match group.asked {
        Asked::Named(part) => commands(&bin, part)?,
        Asked::None => Vec::new(),
    };
    if setting.is_quick() {
        // Every tenth, so that all kinds are among them.
        names = names.into_iter().step_by(10).collect();
        work = work.into_iter().step_by(5).collect();
    }
    tally.commands += names.len();
    tally.working += work.iter().map(|words| &words[0]).collect::<BTreeSet<_>>().len();
    let asked = names.iter().flat_map(|name| {
        [Some("--help"), Some("--version"), None].map(|option| Call {
            words: std::iter::once(name.as_str()).chain(option).map(str::to_owned).collect(),
            project: None,
        })
    });
    let done = work.into_iter().map(|words| Call { words, project: Some(project) });
    let all: Vec<Call<'_>> = done.chain(asked).collect();
    let both = Both { hob: &hob, bin: &bin, folder: hob.folder("project")? };
    let mut progress = Progress::new("the same, cold and through hob");
    for (index, call) in all.iter().enumerate() {
        progress.at(index, all.len());
        both.compare(call, tally)?;
    }
    progress.done();
    hob.stop()
}

/// The commands in a directory whose first line names an interpreter with `part` in its name.
fn commands(bin: &Path, part: &[u8]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(bin)? {
        let path: PathBuf = entry?.path();
        let mut head = [0; 64];
        let read = match std::fs::File::open(&path) {
            Ok(mut file) if path.is_file() && !path.is_symlink() => file.read(&mut head)?,
            Ok(_) | Err(_) => 0,
        };
        let line = head[..read].split(|byte| *byte == b'\n').next().unwrap_or_default();
        let is_named = part.is_empty() || line.windows(part.len()).any(|word| word == part);
        let is_script = line.starts_with(b"#!") && is_named;
        if let (true, Some(name)) = (is_script, path.file_name().and_then(|name| name.to_str())) {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

#[expect(clippy::cast_precision_loss, reason = "some thousand")]
fn count(number: usize) -> f64 {
    number as f64
}
