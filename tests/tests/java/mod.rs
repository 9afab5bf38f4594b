//! Programs of JVMs through the whole system, in each JDK of this machine: warm as cold.

mod classes;
mod clojure;
mod descriptors;
mod ends;
mod files;
mod jars;
mod launch;
mod warm;

use std::path::{Path, PathBuf};
use std::process::Command;

use hob_tests::{Outcome, Run, World};

/// The `java` of each JDK that is hosted, one for each version; the one of 17 is always there.
fn javas() -> Vec<PathBuf> {
    let mut found = std::collections::BTreeMap::new();
    let folders = std::fs::read_dir("/usr/lib/jvm").unwrap();
    for home in folders.map(|entry| entry.unwrap().path()) {
        let Ok(text) = std::fs::read_to_string(home.join("release")) else { continue };
        let version = text.lines().find_map(|line| line.strip_prefix("JAVA_VERSION=\""));
        let major = version.and_then(|version| version.split(['.', '"']).next()?.parse().ok());
        let java = home.join("bin/java");
        if let Some(17..=25) = major
            && java.exists()
        {
            found.insert(major, java);
        }
    }
    assert!(!found.is_empty(), "no JDK from 17 on");
    found.into_values().collect()
}

/// Options of a JVM that loads much and computes little, where nothing is tested of what compiles it, or
/// of how many of it wait: half of a JVM's time goes into its best compiler, which is of no use yet.
const BRIEF: [&str; 2] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];
const ONE_WAITS: [&str; 2] = ["--ahead", "1"];

/// Compiles one file of Java into a folder of the world.
fn compiled(world: &World, folder: &str, name: &str, text: &str) -> PathBuf {
    let source = world.file(&format!("source/{name}.java"), text);
    let classes = world.path(folder);
    let made = Command::new("javac")
        .args(["--release", "17", "-proc:none", "-nowarn", "-cp"])
        .arg(&classes)
        .arg("-d")
        .args([&classes, &source])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    classes
}

/// `hob run --ahead 1 JAVA OPTIONS... WORDS...`, where it is Clojure that is loaded.
fn brief(world: &World, java: &Path, words: &[&str]) -> Run {
    let java = [java.to_str().expect("a JDK's place is text")];
    world.hob(&[&["run"], &ONE_WAITS[..], &java, &BRIEF, words].concat())
}

/// `hob run --ahead 1 JAVA WORDS...`.
fn run<S: AsRef<std::ffi::OsStr>>(world: &World, java: &Path, words: &[S]) -> Run {
    let head = ["run", ONE_WAITS[0], ONE_WAITS[1]].map(AsRef::as_ref);
    let head = head.into_iter().chain([java.as_os_str()]);
    let words: Vec<_> = head.chain(words.iter().map(AsRef::as_ref)).collect();
    world.hob(&words)
}

/// Calls until a call is warm, each as cold, and says that a standby of a JVM performed it.
fn warm_as_cold(world: &World, run: &Run) -> Outcome {
    let warm = world.warm_as_cold(run);
    let record = world.record(warm.pid);
    assert_eq!(record["program"]["runtime"], "jvm", "{record}");
    assert_eq!(record["isolation"], "standby", "{record}");
    warm
}
