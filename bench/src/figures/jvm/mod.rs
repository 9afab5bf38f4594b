//! JVMs: a class and a script warm, cold and beside their peers; sessions; many calls at once; and
//! ten thousand scripts in one session.
//!
//! A call is given a JVM that no other call has, so between two calls of a side there is time for the
//! next one to start. Peers come from packages: `nailgun` from Debian, with its client in C;
//! babashka is measured where it is on PATH. What is not there is said.

mod nrepl;
mod programs;
mod sessions;
mod storm;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::figures::private_in;
use crate::hob::{Hob, Program};
use crate::report::Figure;
use crate::{Setting, say, venv};

const JDKS: &str = "/usr/lib/jvm";
const RELEASES: std::ops::RangeInclusive<u32> = 17..=25;

const HELLO: &str = "public class Hello {
    public static void main(String[] words) {
        System.out.println(\"hello\");
    }
}
";
const SCRIPT: &str = "(println \"hello\")\n";

/// What all parts need.
struct Ground<'a> {
    setting: &'a Setting,
    hob: Hob,
    /// The `java` of each JDK, by its release, the oldest first.
    javas: Vec<(u32, PathBuf)>,
    /// The class path of Clojure.
    clojure: String,
    /// Where `Hello.class` and the scripts are.
    folder: PathBuf,
}

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let mut figure = Figure::new("jvm", "JVMs: a class, a script, sessions, warm and cold");
    let ground = Ground::new(setting)?;
    if setting.is_part("java") {
        programs::classes(&ground, &mut figure)?;
    }
    if setting.is_part("clojure") {
        programs::scripts(&ground, &mut figure)?;
    }
    if setting.is_part("session") {
        sessions::evals(&ground, &mut figure)?;
    }
    if setting.is_part("stdin") {
        sessions::lines(&ground, &mut figure)?;
    }
    if setting.is_part("storm") {
        storm::measure(&ground, &mut figure)?;
    }
    // A part of its own: it takes minutes, and answers one question.
    if setting.only.as_deref() == Some("scripts") {
        sessions::many(&ground, &mut figure)?;
    }
    ground.hob.stop()?;
    Ok(figure)
}

impl Ground<'_> {
    fn new(setting: &Setting) -> Result<Ground<'_>> {
        let javas = javas()?;
        let (_, java) = javas.first().context("no JDK from 17 to 25")?;
        let home = java.parent().and_then(Path::parent).context("a JDK is two folders up")?;
        let hob = private_in(setting, home)?;
        let folder = hob.folder("jvm")?;
        std::fs::write(folder.join("Hello.java"), HELLO)?;
        std::fs::write(folder.join("hello.clj"), SCRIPT)?;
        let mut javac = Command::new(home.join("bin/javac"));
        javac.args(["--release", "17", "-proc:none", "-d", "."]).arg("Hello.java");
        venv::run(javac.current_dir(&folder))?;
        let jars = jars(&setting.root.join("target/tools/session"))?;
        Ok(Ground { setting, hob, javas, clojure: jars, folder })
    }

    /// The oldest JDK, which everything but a class is measured with.
    fn java(&self) -> &Path {
        self.javas.first().map_or(Path::new("java"), |(_, java)| java)
    }

    /// A program that a caller types as it is run by hob.
    fn program(&self, name: &str, words: Vec<OsString>) -> Program {
        let (warm, folder) = (words.clone(), self.folder.clone());
        Program { name: name.to_owned(), warm, cold: words, folder, fresh: None }
    }

    /// What a hob of this ground is told of Clojure.
    fn hob(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.hob.binary());
        self.hob.place(&mut command);
        command.args(words).env("HOB_CLOJURE", &self.clojure).current_dir(&self.folder);
        command.stdin(Stdio::null());
        command
    }

    /// What a verb prints.
    fn ask(&self, words: &[&str]) -> Result<String> {
        let output = self.hob(words).output()?;
        ensure!(
            output.status.success(),
            "`hob {}` failed: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// The `java` of each release, one for each.
fn javas() -> Result<Vec<(u32, PathBuf)>> {
    let mut found = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(JDKS).with_context(|| format!("{JDKS}: no JDK"))? {
        let home = entry?.path();
        let Ok(text) = std::fs::read_to_string(home.join("release")) else { continue };
        let version = text.lines().find_map(|line| line.strip_prefix("JAVA_VERSION=\""));
        let release = version.and_then(|text| text.split(['.', '"']).next()?.parse().ok());
        if let Some(release) = release.filter(|release| RELEASES.contains(release))
            && home.join("bin/javac").exists()
        {
            found.insert(release, home.join("bin/java"));
        }
    }
    Ok(found.into_iter().collect())
}

/// A class path of all jars in a folder.
fn jars(folder: &Path) -> Result<String> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("{}: run `make test-deps`", folder.display()))?;
    let jars = entries.flatten().map(|entry| entry.path());
    let mut jars: Vec<String> = jars
        .filter(|path| path.extension().is_some_and(|end| end == "jar"))
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    ensure!(!jars.is_empty(), "{}: no jar; run `make test-deps`", folder.display());
    jars.sort();
    Ok(jars.join(":"))
}

/// Says that a peer is left out, and how it would not be.
fn missing(peer: &str, how: &str) {
    say(&format!("jvm: {peer} is not measured: it is not there ({how})"));
}
