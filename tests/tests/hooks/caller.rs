//! A caller in a JVM, as the tests of hooks drive it.

use std::hash::{DefaultHasher, Hasher};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use hob_tests::run::Running;
use hob_tests::{World, alone, wait};

/// Where the client and `Caller.java` were compiled to, once for all tests. Each test is a process
/// of its own, and a JVM of another one may read the classes: they come into their place whole.
fn classes() -> &'static PathBuf {
    static CLASSES: OnceLock<PathBuf> = OnceLock::new();
    CLASSES.get_or_init(|| {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
        let client = root.join("clients/jvm/src/main/java/hob");
        let mut sources: Vec<_> =
            client.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        sources.push(root.join("tests/tests/hooks/Caller.java"));
        sources.sort();
        let mut edition = DefaultHasher::new();
        for source in &sources {
            edition.write(&std::fs::read(source).unwrap());
        }
        let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let whole = place.join(format!("jvm-classes-of-{:016x}", edition.finish()));
        if !whole.exists() {
            let made = place.join(format!("jvm-classes-{}", std::process::id()));
            let _alone = alone();
            let mut javac = Command::new("javac");
            let done = javac.args(["--release", "17", "-d"]).arg(&made).args(&sources).output();
            let done = done.expect("these tests need a JDK (17 or newer)");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            if std::fs::rename(&made, &whole).is_err() {
                // Another test was first.
                std::fs::remove_dir_all(&made).unwrap();
            }
        }
        whole
    })
}

/// A JVM that waits for commands.
pub(crate) struct Jvm {
    running: Running,
    input: std::process::ChildStdin,
}

impl Jvm {
    /// Starts one in this world, whose hob it may start.
    pub(crate) fn start(world: &World) -> Jvm {
        Jvm::with(world, |run| run)
    }

    /// The same, started in another way.
    pub(crate) fn with(
        world: &World,
        change: impl FnOnce(hob_tests::Run) -> hob_tests::Run,
    ) -> Jvm {
        let words = ["java", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"];
        let run = world.run(&words).args(&[classes().as_os_str()]).args(&["Caller"]);
        let run = change(run.env("HOB_BIN", world.binary()).stdin_pipe());
        let mut running = run.start();
        let input = running.take_stdin();
        Jvm { running, input }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Gives it a command.
    pub(crate) fn say(&mut self, line: &str) {
        use std::io::Write;
        writeln!(self.input, "{line}").unwrap();
    }

    /// What came of a set, when it comes.
    pub(crate) fn told(&self, name: &str) -> String {
        let begin = format!("{name}: ");
        wait::until(&format!("what came of {name}"), || {
            let out = String::from_utf8_lossy(&self.running.out()).into_owned();
            // Whole lines only.
            let whole = &out[..=out.rfind('\n')?];
            whole.lines().find_map(|line| line.strip_prefix(&begin).map(str::to_owned))
        })
    }

    /// How many lines it has said so far that contain this.
    pub(crate) fn count(&self, part: &str) -> usize {
        let out = String::from_utf8_lossy(&self.running.out()).into_owned();
        out.lines().filter(|line| line.contains(part)).count()
    }

    /// Runs a set to its end.
    pub(crate) fn run(&mut self, name: &str, rest: &str) -> String {
        self.say(&format!("run {name} {rest}"));
        self.told(name)
    }

    /// Lets it end by itself.
    pub(crate) fn finish(self) {
        drop(self.input);
        self.running.finish().succeeded();
    }
}

/// A hooks directory with these hooks, each a shell script's body. Gives its path.
pub(crate) fn hooks(world: &World, folder: &str, scripts: &[(&str, &str)]) -> String {
    std::fs::create_dir_all(world.path("work").join(folder)).unwrap();
    for (name, body) in scripts {
        world.executable(&format!("{folder}/{name}"), format!("#!/bin/sh\n{body}\n"));
    }
    world.path("work").join(folder).to_str().unwrap().to_owned()
}

/// A hook that says its pid in a file of the world and then goes on for ever.
pub(crate) fn stays(world: &World, file: &str) -> String {
    // Written beside and renamed: who sees the file sees the whole number.
    let path = world.path("work").join(file);
    let path = path.display();
    format!("echo $$ >{path}.new; mv {path}.new {path}; exec sleep 100000")
}

/// The pid that a hook has said.
pub(crate) fn pid(world: &World, file: &str) -> u32 {
    let path = world.path("work").join(file);
    wait::until("the hook's pid", || std::fs::read_to_string(&path).ok()?.trim().parse().ok())
}
