//! The row of CPython.

mod options;

use std::path::{Path, PathBuf};

use crate::exec::{no_files, no_words};
use crate::program::{Lookup, Program, RuntimeId, Start, TargetKind};
use crate::projects::Project;
use crate::row::{App, Environments, File, Files, Handlers, Mode, Runtime, Version};

pub(crate) const ROW: Runtime = Runtime {
    id: RuntimeId::Python,
    name: "python",
    title: "CPython 3.9 to 3.14",
    is_interpreter,
    suffixes: &[b".py", b".pyw"],
    has_bare: true,
    forks: true,
    learns: true,
    descriptors_from: Some(3),
    takes_closed: true,
    held_below: 0,
    has_modules: true,
    commands: &[b"python3", b"python"],
    environments: Some(Environments {
        variable: b"VIRTUAL_ENV",
        beside: b".venv",
        interpreter: b"bin/python",
    }),
    home: None,
    expand: no_files,
    parse: options::parse,
    is_talking,
    is_relative,
    // Beside the executable, or one above, is where `pyvenv.cfg` is looked for.
    beside: &[b"pyvenv.cfg", b"../pyvenv.cfg"],
    is_archive,
    is_named: false,
    words: no_words,
    variables: &["PYTHON*"],
    version,
    supported: (3, 9)..=(3, 14),
    files: &FILES,
    command,
    handlers: Handlers::Function,
    apps: &APPS,
    new: &NEW,
};

const NEW: [Project; 2] = [
    Project {
        kind: "py",
        title: "a script of Python, a function that answers, and a test",
        files: &[
            ("main.py", include_str!("../../../../runtimes/python/new/main.py")),
            ("core.py", include_str!("../../../../runtimes/python/new/core.py")),
            ("test_core.py", include_str!("../../../../runtimes/python/new/test_core.py")),
            ("hob.toml", include_str!("../../../../runtimes/python/new/hob.toml")),
        ],
        steps: &[
            ("hob run main.py Ada", "Run it; from the second call on it is warm"),
            ("hob trust && hob ask PROJECT Ada", "Ask its function"),
            ("hob run -m unittest", "Test it"),
        ],
    },
    Project {
        kind: "app",
        title: "a web app in Python, and a page",
        files: &[
            ("app.py", include_str!("../../../../runtimes/python/new/app.py")),
            ("public/index.html", include_str!("../../../../runtimes/python/new/index.html")),
            ("hob.toml", include_str!("../../../../runtimes/python/new/app.toml")),
        ],
        steps: &[
            ("hob trust && hob serve", "Serve it; the page is at http://127.0.0.1:8000"),
            ("curl 'http://127.0.0.1:8000/hello?name=Ada'", "Ask the app"),
            ("hob serve status", "Show what is served"),
        ],
    },
];

/// The files that frameworks make, and the names that servers look for in them.
const APPS: [App; 3] = [
    App {
        interface: "asgi",
        file: "asgi.py",
        callables: &["application", "app"],
        websocket: true,
        concurrent: true,
    },
    App {
        interface: "wsgi",
        file: "wsgi.py",
        callables: &["application", "app"],
        websocket: false,
        concurrent: false,
    },
    App {
        interface: "wsgi",
        file: "app.py",
        callables: &["app", "application"],
        websocket: false,
        concurrent: false,
    },
];

/// A file that `build.rs` has joined of the parts in its folder.
macro_rules! joined {
    ($file:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $file))
    };
}

/// What is started in an interpreter is written last: it finds the others beside it, or as bytecode.
/// These are loaded where modules are imported ahead (`watch`, `imports`), say what is run ahead
/// of the standard library's (`rehearsal`), what each copy has anew (`anew`), what must be
/// finalised (`ends`), and what handlers have besides (`message`, and the library for callers,
/// which a handler has without installing it), or web apps (`web`).
const FILES: [File; 10] = [
    ("watch.py", joined!("watch.py")),
    ("imports.py", joined!("imports.py")),
    ("anew.py", include_bytes!("../../../../runtimes/python/anew.py")),
    ("ends.py", include_bytes!("../../../../runtimes/python/ends.py")),
    ("rehearsal.py", include_bytes!("../../../../runtimes/python/rehearsal.py")),
    ("message.py", joined!("message.py")),
    ("web.py", joined!("web.py")),
    ("python/hob.py", include_bytes!("../../../../clients/python/hob.py")),
    ("worker.py", joined!("worker.py")),
    ("start.py", include_bytes!("../../../../runtimes/python/start.py")),
];

/// Whether a file's name is that of a CPython 3: `python`, `python3`, `python3.13t`.
fn is_interpreter(name: &[u8]) -> bool {
    let Some(version) = name.strip_prefix(b"python") else { return false };
    let Some(minor) = version.strip_prefix(b"3") else { return version.is_empty() };
    let Some(minor) = minor.strip_prefix(b".") else { return minor.is_empty() };
    let digits = minor.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && minor[digits..].iter().all(|byte| matches!(byte, b'd' | b't' | b'm'))
}

/// Variables with which an interpreter tells of each of its runs what a copy would tell once, or
/// asks its user for more at the end.
const TALKING: [&[u8]; 7] = [
    b"PYTHONVERBOSE",
    b"PYTHONMALLOCSTATS",
    b"PYTHONPROFILEIMPORTTIME",
    b"PYTHONDUMPREFS",
    b"PYTHONDUMPREFSFILE",
    b"PYTHONINSPECT",
    b"PYTHON_PRESITE",
];

fn is_talking(variable: Lookup<'_>) -> bool {
    TALKING.iter().any(|name| variable(name).is_some_and(|value| !value.is_empty()))
}

/// Whether `PYTHONPATH` names the working directory or something in it.
fn is_relative(options: &[Vec<u8>], variable: Lookup<'_>) -> bool {
    let isolated = options.iter().any(|option| option == b"-E" || option == b"-I");
    let path = variable(b"PYTHONPATH").filter(|path| !path.is_empty() && !isolated);
    path.is_some_and(|path| path.split(|byte| *byte == b':').any(|dir| !dir.starts_with(b"/")))
}

/// A directory, a zip archive (also one behind a `#!` line), compiled code.
fn is_archive(start: Start<'_>) -> bool {
    let bytes = start.bytes;
    let suffixes: [&[u8]; 6] = [b".pyc", b".pyz", b".pex", b".zip", b".egg", b".whl"];
    let zip = bytes.starts_with(b"PK\x03\x04")
        || (bytes.starts_with(b"#!") && bytes.windows(5).any(|part| part == b"\nPK\x03\x04"));
    let compiled = bytes.get(1..4) == Some(b"\r\r\n");
    start.is_directory
        || zip
        || compiled
        || suffixes.iter().any(|suffix| start.path.ends_with(suffix))
}

/// From the name of the real file: every distribution of CPython has `python3.N` at the end of its
/// links. What is named otherwise is not taken for one, but for the copy that `venv --copies` makes:
/// the environment says of which it is.
fn version(real: &Path) -> Option<Version> {
    named_version(real).or_else(|| copied_version(real.parent()?))
}

/// What an environment's `pyvenv.cfg` says, where the interpreter that it was made of is a CPython of
/// that very version. A copy of another implementation says so too, and its original has its name.
fn copied_version(bin: &Path) -> Option<Version> {
    let settings = bin.parent()?.join("pyvenv.cfg");
    let settings =
        settings.metadata().ok()?.is_file().then(|| std::fs::read_to_string(&settings))?;
    let (home, (major, minor)) = made_of(&settings.ok()?)?;
    let original = std::fs::canonicalize(home.join(format!("python{major}.{minor}"))).ok()?;
    named_version(&original).filter(|version| *version == (major, minor))
}

/// Where the interpreter is that an environment was made of, and its version: `version` as `venv`
/// writes it, `version_info` as `virtualenv` does.
fn made_of(settings: &str) -> Option<(PathBuf, Version)> {
    let value = |name: &str| {
        settings.lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == name).then(|| value.trim())
        })
    };
    let mut parts = value("version").or_else(|| value("version_info"))?.split('.');
    let version = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some((value("home")?.into(), version))
}

fn named_version(real: &Path) -> Option<Version> {
    let minor = real.file_name()?.to_str()?.strip_prefix("python3.")?;
    Some((3, minor.parse().ok()?))
}

/// The interpreter is told to run no start-up code (`-S`): the runtime does that itself, and
/// listens.
fn command(program: &Program, files: Files<'_>, mode: Mode<'_>) -> Vec<Vec<u8>> {
    let mut argv = vec![program.prefix.first().unwrap_or(&program.interpreter).clone()];
    argv.extend(program.options.iter().cloned());
    argv.push(b"-S".to_vec());
    argv.push(files.main(&ROW));
    let word: &[u8] = if matches!(mode, Mode::Learn(_)) { b"learn" } else { b"serve" };
    argv.extend([word.to_vec(), files.folder.to_vec(), files.bytecode.to_vec()]);
    match mode {
        Mode::Serve | Mode::Handler => {}
        Mode::Learn(notes) => {
            let kind: &[u8] = match program.target.kind {
                TargetKind::Script | TargetKind::Bare | TargetKind::Installed => b"script",
                TargetKind::Module | TargetKind::Class => b"module",
            };
            argv.extend([notes.to_vec(), kind.to_vec()]);
            argv.push(program.target.name.clone());
            argv.push(program.prefix.len().to_string().into_bytes());
            argv.extend(program.prefix.iter().cloned());
            argv.extend(program.argv.iter().cloned());
        }
    }
    argv
}
