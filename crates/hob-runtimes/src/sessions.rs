//! Languages that have sessions: processes that keep what they evaluate.
//!
//! A row is data, and a function that puts a command line together. What has to be looked for in a
//! user's world (an interpreter, libraries) the row names, and the client looks.

use crate::projects::Project;
use crate::row::File;

/// What hob must know of a language to keep a session of it.
#[derive(Debug)]
pub struct Sessions {
    /// Its name in receipts and `hob session list`.
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// Ends of names that make a file its script.
    pub suffixes: &'static [&'static [u8]],
    /// Where its interpreter is.
    pub interpreter: Interpreter,
    /// Where its libraries are found, the most telling place first.
    pub libraries: &'static [Libraries],
    /// How a program of it is executed without a session.
    pub launcher: Launcher,
    /// What to do where no libraries are found: the end of an error.
    pub advice: &'static str,
    /// Its files below the daemon's directory, the one that is started last.
    pub files: &'static [File],
    /// What `hob new` makes of it.
    pub new: &'static [Project],
    /// The argv of a session.
    pub command: fn(Session<'_>) -> Vec<Vec<u8>>,
}

/// Where an interpreter is found.
#[derive(Debug, Clone, Copy)]
pub struct Interpreter {
    /// The variable that names its installation; counts before `PATH`.
    pub variable: &'static [u8],
    /// Its path in that.
    pub inside: &'static [u8],
    /// Its name on `PATH`.
    pub command: &'static [u8],
}

/// A command that looks libraries up and ends in executing the interpreter. What it executes depends
/// on its own words and on its files, and not on the words of the program behind them.
#[derive(Debug, Clone, Copy)]
pub struct Launcher {
    /// Its name on `PATH`.
    pub command: &'static str,
    /// What stands between it and a script.
    pub words: &'static [&'static str],
    /// How many words are its own, of a line that begins with its name; `None`: it does not end in a
    /// program, or it is not known where that begins.
    pub own_words: fn(&[&[u8]]) -> Option<usize>,
    /// The file in a directory that says which libraries it means.
    pub manifest: &'static str,
    /// What says it in a directory that has no such file.
    pub other_manifest: &'static str,
    /// The places of libraries that a manifest of either kind names: directories, or files.
    pub places: fn(&str) -> Vec<&str>,
    /// Where a user's own such file lies, the first that is there: a variable and a place below it.
    pub user_manifests: &'static [(&'static [u8], &'static str)],
    /// Variables that decide what is executed.
    pub variables: &'static [&'static [u8]],
    /// The variable that names the interpreter which it executes. One that does not know it is not asked.
    pub interpreter: &'static str,
    /// What stands in the command lines of executions that are no program's.
    pub inner: &'static str,
    /// What says the same where the command is not installed.
    pub resolver: Resolver,
    /// What is executed where the libraries are known without it: behind the interpreter, and behind
    /// the libraries.
    pub plain: [&'static str; 2],
    /// The options whose value, in the same word or the next one, are places that count from where the
    /// command ran.
    pub relative: [&'static str; 2],
}

/// A program for hob's own interpreter that says what a launcher would execute.
#[derive(Debug, Clone, Copy)]
pub struct Resolver {
    /// What people call it.
    pub title: &'static str,
    /// Its file: nothing where the build could not make it.
    pub file: File,
    /// The argv that asks it. It is run where the launcher would be.
    pub command: fn(Resolve<'_>) -> Vec<Vec<u8>>,
}

/// A question for a [`Resolver`].
#[derive(Debug, Clone, Copy)]
pub struct Resolve<'a> {
    /// The interpreter's file.
    pub interpreter: &'a [u8],
    /// Its file, where it was written to.
    pub file: &'a [u8],
    /// The user's home.
    pub home: &'a [u8],
    /// Where it keeps what it needs itself.
    pub cache: &'a [u8],
    /// Where it writes its answer, each word with a NUL behind it; beside it is room for files that go.
    pub note: &'a [u8],
    /// Where it writes a file that the answer may name, and that stays.
    pub kept: &'a [u8],
    /// The words that the launcher would have for itself.
    pub own: &'a [&'a [u8]],
}

/// A place where a user's libraries are found.
#[derive(Debug, Clone, Copy)]
pub enum Libraries {
    /// A command says so, where there is this file in the working directory; empty: wherever.
    Command(&'static str, &'static [&'static str]),
    /// A variable says so.
    Variable(&'static [u8]),
    /// The newest of each of these in the repository below the home directory: the folder of an
    /// artefact and its name.
    Repository(&'static str, &'static [(&'static str, &'static str)]),
}

/// A session that is to be started.
#[derive(Debug, Clone, Copy)]
pub struct Session<'a> {
    /// The interpreter's file.
    pub interpreter: &'a [u8],
    /// Where its libraries are.
    pub libraries: &'a [u8],
    /// The directory that the files were written to.
    pub folder: &'a [u8],
    /// The socket that it listens on.
    pub socket: &'a [u8],
}

/// Each language that has sessions.
const ALL: [Sessions; 1] = [CLOJURE];
static ROWS: [Sessions; 1] = ALL;

/// Each row.
pub fn with_sessions() -> impl Iterator<Item = &'static Sessions> {
    ROWS.iter()
}

/// The row of this name.
#[must_use]
pub fn session_language(name: &str) -> Option<&'static Sessions> {
    with_sessions().find(|row| row.name == name)
}

/// The language that a program is of whose file or command has this name.
///
/// Each call of the client asks, nearly always in vain. The rows are constants here: what becomes of this
/// compares a name with them in code, and reads no page of the table.
#[must_use]
#[inline]
pub fn launched(name: &[u8]) -> Option<&'static Sessions> {
    let means = |row: &Sessions| {
        let is_command = match name.strip_suffix(row.launcher.command.as_bytes()) {
            Some([] | [.., b'/']) => true,
            Some(_) | None => false,
        };
        is_command || row.suffixes.iter().any(|suffix| name.ends_with(suffix))
    };
    let at = const { &ALL }.iter().position(means)?;
    ROWS.get(at)
}

/// `clojure -J… -Sdeps EDN -M:alias`, and `clojure SCRIPT`.
fn own_words(line: &[&[u8]]) -> Option<usize> {
    let mut at = 1;
    loop {
        match *line.get(at)? {
            b"-Sdeps" => at += 2,
            word if word.starts_with(b"-J") => at += 1,
            word if word == b"-M" || word.starts_with(b"-M:") => return Some(at + 1),
            word if word.starts_with(b"-") => return None,
            _ => return Some(at),
        }
    }
}

/// What stands behind each `:local/root` of a `deps.edn`, or the parent of a `pom.xml`.
fn places(text: &str) -> Vec<&str> {
    let behind = text.split(":local/root").skip(1);
    behind.filter_map(|rest| rest.split('"').nth(1)).chain(parent_of_pom(text)).collect()
}

/// Where Maven looks for the parent of a `pom.xml`: one directory above, unless it is told otherwise.
fn parent_of_pom(text: &str) -> Option<&str> {
    let (_, parent) = text.split_once("<parent>")?;
    let (parent, _) = parent.split_once("</parent>")?;
    match parent.split_once("<relativePath>") {
        Some((_, path)) => path.split('<').next().map(str::trim).filter(|path| !path.is_empty()),
        None if parent.contains("<relativePath") => None,
        None => Some(".."),
    }
}

const LAUNCHER: Launcher = Launcher {
    command: "clojure",
    words: &["-M"],
    own_words,
    manifest: "deps.edn",
    other_manifest: "pom.xml",
    places,
    user_manifests: &[
        (b"CLJ_CONFIG", "deps.edn"),
        (b"XDG_CONFIG_HOME", "clojure/deps.edn"),
        (b"HOME", ".clojure/deps.edn"),
    ],
    variables: &[
        b"JAVA_CMD",
        b"JAVA_HOME",
        b"JAVA_OPTS",
        b"CLJ_CONFIG",
        b"CLJ_CACHE",
        b"CLJ_JVM_OPTS",
        b"XDG_CONFIG_HOME",
        b"HOME",
    ],
    interpreter: "JAVA_CMD",
    inner: "clojure.tools.deps",
    resolver: Resolver {
        title: "tools.deps",
        file: ("resolve.jar", crate::jvm::JAR),
        command: resolve,
    },
    plain: ["-cp", "clojure.main"],
    relative: ["-classpath", "-Dclojure.basis="],
};

/// It lies in the jar of what JVMs wait with. A JVM takes the home of its user from elsewhere. The best
/// compiler of a JVM that runs for seconds takes more time than it saves.
fn resolve(ask: Resolve<'_>) -> Vec<Vec<u8>> {
    let repository = [ask.home, b"/.m2/repository"].concat();
    let home = [b"-Duser.home=", ask.home].concat();
    let brief: [&[u8]; 2] = [b"-XX:TieredStopAtLevel=1", b"-XX:+UseSerialGC"];
    let head = [ask.interpreter, brief[0], brief[1], &home, b"-cp", ask.file, b"hob.deps.Resolve"];
    let places = [repository.as_slice(), ask.cache, ask.note, ask.kept];
    let words = head.into_iter().chain(places).chain(ask.own.iter().copied());
    words.map(<[u8]>::to_vec).collect()
}

const CLOJURE: Sessions = Sessions {
    name: "clojure",
    title: "Clojure 1.10 and later, on JDK 17 to 25",
    suffixes: &[b".clj", b".cljc"],
    interpreter: Interpreter { variable: b"JAVA_HOME", inside: b"bin/java", command: b"java" },
    libraries: &[
        Libraries::Command("deps.edn", &["clojure", "-Spath"]),
        Libraries::Variable(b"CLASSPATH"),
        Libraries::Variable(b"HOB_CLOJURE"),
        Libraries::Command("", &["clojure", "-Spath"]),
        Libraries::Repository(
            ".m2/repository",
            &[
                ("org/clojure/clojure", "clojure"),
                ("org/clojure/spec.alpha", "spec.alpha"),
                ("org/clojure/core.specs.alpha", "core.specs.alpha"),
            ],
        ),
    ],
    launcher: LAUNCHER,
    advice: "there is no Clojure: name its jars with --cp or HOB_CLOJURE (as in \
             `HOB_CLOJURE=clojure.jar:spec.alpha.jar:core.specs.alpha.jar`), or install the \
             `clojure` command",
    files: &FILES,
    new: &NEW,
    command,
};

const NEW: [Project; 1] = [Project {
    kind: "clj",
    title: "a script of Clojure, what it uses, and a test",
    files: &[
        ("core.clj", include_str!("../../../runtimes/jvm/new/core.clj")),
        ("main.clj", include_str!("../../../runtimes/jvm/new/main.clj")),
        ("test.clj", include_str!("../../../runtimes/jvm/new/test.clj")),
    ],
    steps: &[
        ("hob run main.clj Ada", "Run it; from the second call on it is warm"),
        ("hob run test.clj", "Test it"),
        ("hob session repl --port", "Serve a session to an editor"),
    ],
}];

/// The one that is started is written last: it loads the others from beside it.
const FILES: [File; 4] = [
    ("session/wire.clj", include_bytes!("../../../runtimes/jvm/session/wire.clj")),
    ("session/editors.clj", include_bytes!("../../../runtimes/jvm/session/editors.clj")),
    ("session/project.clj", include_bytes!("../../../runtimes/jvm/session/project.clj")),
    ("session/session.clj", include_bytes!("../../../runtimes/jvm/session/session.clj")),
];

/// Soft references go with the next collection: the cache of classes by name holds what scripts
/// have loaded by nothing else, and a process with room would keep it for good.
fn command(session: Session<'_>) -> Vec<Vec<u8>> {
    let file = [session.folder, b"/session/session.clj"].concat();
    [
        session.interpreter,
        b"-XX:SoftRefLRUPolicyMSPerMB=0",
        b"-cp",
        session.libraries,
        b"clojure.main",
        &file,
        session.socket,
    ]
    .into_iter()
    .map(<[u8]>::to_vec)
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_has_its_own_words_before_the_programs() {
        let of = |line: &str| {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            own_words(&words)
        };
        assert_eq!(of("clojure -M:dev:test -m my.ns a"), Some(2));
        assert_eq!(of("clojure -J-Xmx1g -Sdeps {} -M script.clj"), Some(5));
        assert_eq!(of("clojure script.clj a"), Some(1));
        for line in ["clojure", "clojure -Spath", "clojure -X:run", "clojure -h", "clojure -A:dev"]
        {
            assert_eq!(of(line), None, "{line}");
        }
        assert!(launched(b"/usr/bin/clojure").is_some() && launched(b"a/b.cljc").is_some());
        assert!(launched(b"clj").is_none() && launched(b"a.cljs").is_none());
        assert_eq!(places("{a {:local/root \"../a\"} b {:local/root\n\"b\"}}"), ["../a", "b"]);
        let parent = |path| format!("<project><parent><version>1</version>{path}</parent>");
        assert_eq!(places(&parent("")), [".."]);
        assert_eq!(places(&parent("<relativePath> ../up/p.xml\n</relativePath>")), ["../up/p.xml"]);
        for none in ["<relativePath/>", "<relativePath></relativePath>"] {
            assert!(places(&parent(none)).is_empty(), "{none}");
        }
        assert!(places("<project><relativePath>a</relativePath></project>").is_empty());
    }
}
