//! Languages that have sessions: processes that keep what they evaluate.
//!
//! A row is data, and a function that puts a command line together. What has to be looked for in a
//! user's world (an interpreter, libraries) the row names, and the client looks.

use crate::table::File;

/// What hob must know of a language to keep a session of it.
#[derive(Debug)]
pub struct Sessions {
    /// Its name in receipts and `hob sessions`.
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// Ends of names that make a file its script.
    pub suffixes: &'static [&'static [u8]],
    /// Where its interpreter is.
    pub interpreter: Interpreter,
    /// Where its libraries are found, the most telling place first.
    pub libraries: &'static [Libraries],
    /// What to do where no libraries are found: the end of an error.
    pub advice: &'static str,
    /// Its files below the daemon's directory, the one that is started last.
    pub files: &'static [File],
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
static ROWS: [Sessions; 1] = [CLOJURE];

/// Each row.
pub fn with_sessions() -> impl Iterator<Item = &'static Sessions> {
    ROWS.iter()
}

/// The row of this name.
#[must_use]
pub fn session_language(name: &str) -> Option<&'static Sessions> {
    with_sessions().find(|row| row.name == name)
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
    advice: "there is no Clojure: name its jars with --cp or HOB_CLOJURE (as in \
             `HOB_CLOJURE=clojure.jar:spec.alpha.jar:core.specs.alpha.jar`), or install the \
             `clojure` command",
    files: &FILES,
    command,
};

/// The one that is started is written last: it loads the others from beside it.
const FILES: [File; 3] = [
    ("session/wire.clj", include_bytes!("../../../runtimes/jvm/session/wire.clj")),
    ("session/editors.clj", include_bytes!("../../../runtimes/jvm/session/editors.clj")),
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
