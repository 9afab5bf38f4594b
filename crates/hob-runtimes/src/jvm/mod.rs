//! The row of JVMs: HotSpot, as JDKs from 17 on have it.

mod files;
mod options;

use std::path::Path;

use crate::exec;
use crate::program::{Lookup, Program, RuntimeId, TargetKind};
use crate::row::{File, Files, Handlers, Home, Mode, Runtime, Version};

/// What the build could make: nothing, where it found no JDK.
pub(crate) const JAR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/gate.jar"));
const GATE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/gate.so"));

pub(crate) const ROW: Runtime = Runtime {
    id: RuntimeId::Jvm,
    name: "jvm",
    title: "Java 17 to 25",
    is_interpreter,
    // A jar is named behind `-jar`: by itself it is executed by what the system has for that.
    suffixes: &[],
    has_bare: false,
    // It has threads from its start.
    forks: false,
    // What it has loaded it knows itself.
    learns: false,
    descriptors_from: Some(3),
    // It would open its own files there.
    takes_closed: false,
    // What it has open it closes for no call. A shell gives 63 to the first `<(...)`.
    held_below: 64,
    has_modules: false,
    commands: &[b"java"],
    environments: None,
    home: Some(Home { variable: "JAVA_HOME", of: home }),
    expand: files::expand,
    parse: options::parse,
    is_talking,
    is_relative: options::is_relative,
    // The gate says itself what it was started from.
    beside: &[],
    is_archive: exec::no_archive,
    // The class path of `-jar` is the jar as it is named.
    is_named: true,
    words,
    variables: &["JAVA_*", "JDK_*", "_JAVA_*", "CLASSPATH"],
    version,
    supported: (17, 0)..=(25, u32::MAX),
    files: &FILES,
    command,
    handlers: Handlers::No,
    apps: &[],
    new: &[],
};

/// Standbys note in the first what later ones are not to load ahead.
const FILES: [File; 3] = [("jvm/left-out", b""), ("jvm/gate.so", GATE), ("jvm/gate.jar", JAR)];

fn is_interpreter(name: &[u8]) -> bool {
    name == b"java"
}

/// Variables from which a JVM takes options, which it says on standard error; and those that make its
/// launcher talk.
fn is_talking(variable: Lookup<'_>) -> bool {
    let names: [&[u8]; 5] = [
        b"JAVA_TOOL_OPTIONS",
        b"JDK_JAVA_OPTIONS",
        b"_JAVA_OPTIONS",
        b"_JAVA_LAUNCHER_DEBUG",
        b"JDK_LAUNCHER_DEBUG",
    ];
    names.iter().any(|name| variable(name).is_some_and(|value| !value.is_empty()))
}

/// Clojure's own main is a program of its script's, or of the namespace behind `-m`: a standby loads
/// ahead what that names.
fn words(program: &Program) -> usize {
    if program.target.kind != TargetKind::Class || program.target.name != b"clojure.main" {
        return 0;
    }
    match program.argv.get(1).map(Vec::as_slice) {
        Some(b"-m" | b"--main") => 2,
        Some([first, ..]) if *first != b'-' && *first != b'@' => 1,
        Some(_) | None => 0,
    }
}

/// The text of a regular file: nothing else is opened to look.
fn text_of(file: &Path) -> Option<String> {
    std::fs::read_to_string(file.metadata().ok().filter(|meta| meta.is_file()).and(Some(file))?)
        .ok()
}

/// `java` lies in `bin` of its JDK.
fn home(real: &Path) -> Option<&Path> {
    let home = real.parent()?.parent()?;
    home.join("release").exists().then_some(home)
}

/// From the file `release` of the JDK; none where there is no gate, or another VM than HotSpot.
fn version(real: &Path) -> Option<Version> {
    if JAR.is_empty() {
        return None;
    }
    version_in(&text_of(&real.parent()?.parent()?.join("release"))?)
}

fn version_in(release: &str) -> Option<Version> {
    let value = |name: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.map(|value| value.trim_matches('"'))
    };
    if value("JVM_VARIANT").is_some_and(|name| !name.eq_ignore_ascii_case("hotspot")) {
        return None;
    }
    let mut parts = value("JAVA_VERSION")?.split(['.', '+', '-', '_']);
    let major = parts.next()?.parse().ok()?;
    Some((major, parts.next().and_then(|minor| minor.parse().ok()).unwrap_or(0)))
}

/// The caller's own options; behind them what the gate needs to be there.
fn command(program: &Program, files: Files<'_>, mode: Mode<'_>) -> Vec<Vec<u8>> {
    if matches!(mode, Mode::Learn(_)) {
        return program.cold_argv().1.into_iter().map(<[u8]>::to_vec).collect();
    }
    let mut argv = program.prefix.clone();
    let name = program.argv.first().unwrap_or(&program.target.name);
    match program.target.kind {
        TargetKind::Class if argv.last().is_some_and(|word| options::is_module(word)) => {
            // What the launcher makes of the option: the module is the root of the boot layer.
            let module = name.split(|byte| *byte == b'/').next().unwrap_or_default();
            argv.pop();
            argv.push([b"-Djdk.module.main=", module].concat());
            // The launcher would add the working directory to the path of a class.
            if !program.options.iter().any(|option| option.starts_with(b"--class-path")) {
                argv.extend([b"-cp".to_vec(), Vec::new()]);
            }
        }
        TargetKind::Class => {}
        TargetKind::Script | TargetKind::Module | TargetKind::Bare | TargetKind::Installed => {
            argv.pop();
            argv.extend([b"-cp".to_vec(), name.clone()]);
        }
    }
    let jar = files.main(&ROW);
    let gate = [&jar[..jar.len() - b"jar".len()], b"so"].concat();
    argv.push([b"-Xbootclasspath/a:", jar.as_slice()].concat());
    argv.extend([b"hob.Gate".to_vec(), gate]);
    // What it is called by, where argument files stand for some of it.
    if let Some(written) = &program.written {
        argv.push(written.says.to_string().into_bytes());
        argv.extend(written.words.iter().cloned());
    }
    argv
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_what_the_release_file_says_of_hotspot() {
        let of = |text: &str| version_in(text);
        assert_eq!(of("IMPLEMENTOR=\"Debian\"\nJAVA_VERSION=\"17.0.12\"\n"), Some((17, 0)));
        assert_eq!(of("JVM_VARIANT=\"Hotspot\"\nJAVA_VERSION=\"25\"\n"), Some((25, 0)));
        assert_eq!(of("JAVA_VERSION=\"1.8.0_402\"\n"), Some((1, 8)));
        assert_eq!(of("JVM_VARIANT=\"OpenJ9\"\nJAVA_VERSION=\"17.0.1\"\n"), None);
        assert_eq!(of("SOURCE=\"\"\n"), None);
    }

    #[test]
    fn the_shared_object_needs_no_library() {
        // An ELF file of 64 bits: its dynamic section has an entry of the tag 1 for each.
        let word = |at: usize, bytes: usize| {
            let mut word = [0; 8];
            word[..bytes].copy_from_slice(&GATE[at..at + bytes]);
            usize::try_from(u64::from_le_bytes(word)).unwrap()
        };
        assert_eq!(&GATE[..5], b"\x7fELF\x02");
        let (headers, size, count) = (word(32, 8), word(54, 2), word(56, 2));
        let mut dynamic = Vec::new();
        for header in (0..count).map(|index| headers + index * size) {
            if word(header, 4) == 2 {
                let (from, bytes) = (word(header + 8, 8), word(header + 32, 8));
                dynamic.extend((from..from + bytes).step_by(16).map(|at| word(at, 8)));
            }
        }
        assert!(!dynamic.is_empty() && !dynamic.contains(&1), "{dynamic:?}");
    }

    #[test]
    fn variables_with_options_are_left_to_the_jvm() {
        let with = |name: &'static [u8], value: &'static [u8]| {
            is_talking(&move |asked| (asked == name).then_some(value))
        };
        assert!(with(b"JAVA_TOOL_OPTIONS", b"-Xmx1g"));
        assert!(with(b"JDK_JAVA_OPTIONS", b"-ea"));
        assert!(!with(b"JAVA_TOOL_OPTIONS", b""));
        assert!(!with(b"JAVA_HOME", b"/opt/jdk"));
    }
}
