//! What a resolution answers: the program, and how to execute it cold.
//!
//! These are plain records. An interpreter's command line is always `prefix` followed by `argv`,
//! for scripts and for modules alike; nothing else needs to know where `-m` stood. A program that
//! is only executed has an empty prefix.

/// How a variable of the caller's environment is looked up.
pub type Lookup<'a> = &'a dyn Fn(&[u8]) -> Option<&'a [u8]>;

/// How a file is read that a command line names: relative to the caller's directory, whole. `None`: it
/// is not there, no plain file, or too large.
pub type Read<'a> = &'a dyn Fn(&[u8]) -> Option<Vec<u8>>;

/// The runtimes, in the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RuntimeId {
    /// None: the program is executed as it is.
    Exec,
    /// A program that is its own runtime (linked with `hob-worker`); it hosts handlers only.
    Native,
    /// CPython.
    Python,
    /// CRuby.
    Ruby,
    /// HotSpot, of a JDK.
    Jvm,
}

/// What would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Which row of the table hosts it; [`RuntimeId::Exec`]: none, it is executed as it is.
    pub runtime: RuntimeId,
    /// The file to execute. Of a hosted program the absolute path of the interpreter: a virtual
    /// environment's own `bin/python`, never what it links to, since the interpreter finds its
    /// prefix from this name. Of another one the path for `execve`; a relative one counts from the
    /// caller's working directory.
    pub interpreter: Vec<u8>,
    /// The command line before the target: the interpreter as the caller (or the kernel) names it,
    /// its options, and for a module also the `-m`.
    pub prefix: Vec<Vec<u8>>,
    /// The interpreter's options alone, one string each, values attached (`-u`, `-Wdefault`).
    pub options: Vec<Vec<u8>>,
    /// What the interpreter runs.
    pub target: Target,
    /// The program's own argv: a script as the caller or the kernel names it, or the module's
    /// name, then the arguments. Of what is only executed the whole argv, `argv[0]` as given.
    pub argv: Vec<Vec<u8>>,
    /// What the caller wrote in the place of the prefix and the first of `argv`, where that is another
    /// thing.
    pub written: Option<Written>,
    /// What a skipped shim would have changed in the environment.
    pub env: EnvChanges,
    /// Whether the working directory is part of the key.
    pub directory: WorkingDirectory,
    /// Absolute paths whose change changes this resolution; some of them may not exist.
    pub watch: Vec<Vec<u8>>,
    /// Why it is only executed, if an interpreter or a shim was recognised.
    pub note: Option<ColdNote>,
}

/// The beginning of a command line as its caller wrote it: an argument file stands for the words in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The interpreter's name, and the words up to the one that names the target or the file with it.
    pub words: Vec<Vec<u8>>,
    /// How many of the program's `argv` they say: at least its target.
    pub says: usize,
}

/// What became of a command line's argument files: `None` where it names none.
pub type Expansion = Result<Option<Expanded>, ColdNote>;

/// A command line with the words of argument files in the place of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expanded {
    /// All words behind the interpreter's name.
    pub words: Vec<Vec<u8>>,
    /// Behind how many of them each written word ends, up to the one with the target.
    pub ends: Vec<usize>,
    /// How many written words these are.
    pub passed: usize,
    /// The files, as they are named.
    pub files: Vec<Vec<u8>>,
}

/// What an interpreter runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// A file, a module or a class.
    pub kind: TargetKind,
    /// The script's absolute path, or the name of the module or class. Of what is only executed
    /// its file.
    pub name: Vec<u8>,
}

/// Whether a program is a file, a module, a class, or not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TargetKind {
    /// A file.
    Script,
    /// `-m NAME`.
    Module,
    /// A class by its name, or a module of classes: both are found by paths that options name.
    Class,
    /// Nothing yet: the bare interpreter, which is told what to run when a call comes.
    Bare,
    /// The same with the installed packages that a script loads, and nothing of its own.
    Installed,
}

/// Changes to the caller's environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvChanges {
    /// Variables that are set.
    pub set: Vec<(Vec<u8>, Vec<u8>)>,
    /// Variables that are removed.
    pub unset: Vec<Vec<u8>>,
}

impl EnvChanges {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.unset.is_empty()
    }

    /// As `run cold` carries them: `NAME=value` sets, `NAME` alone removes.
    pub fn words(&self) -> impl Iterator<Item = Vec<u8>> {
        let set = self.set.iter().map(|(name, value)| [name, b"=".as_slice(), value].concat());
        set.chain(self.unset.iter().cloned())
    }
}

/// Whether the caller's working directory decides which modules are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkingDirectory {
    /// It does not: the same warm state serves every directory.
    Free,
    /// It does (a module target, or relative entries in a search path): part of the key.
    Keyed,
}

/// Why something that involves an interpreter is nevertheless only executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColdNote {
    /// Code on the command line (`-c CODE`, `-e CODE`).
    InlineCode,
    /// The program comes from standard input (`-`).
    StandardInput,
    /// The interpreter alone, or `-i`.
    Interactive,
    /// An interpreter option that is not performed warm (`-V`, `-h`, `-v`, `-x`, ...).
    UnknownOption,
    /// A directory, an archive, a pipe, or compiled code in place of a script.
    Archive,
    /// The script does not exist or cannot be read: the interpreter itself says so best.
    ScriptMissing,
    /// The executable changes the user or group.
    SetId,
    /// A shim that is not understood wholly (a hook, an unknown layout, a missing version).
    Shim,
}

/// What follows an interpreter's name on its command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The words before the target as they stood (a joined module name cut off).
    pub before: Vec<Vec<u8>>,
    /// One string per option, values attached.
    pub options: Vec<Vec<u8>>,
    /// What the target is.
    pub kind: TargetKind,
    /// The script as named, or the module's name.
    pub target: Vec<u8>,
    /// How many words the target ends after: the arguments follow.
    pub used: usize,
}

impl CommandLine {
    /// The line of a script that is named by `words[at]`; `alone`: what an interpreter without one
    /// is.
    pub(crate) fn script(
        words: &[Vec<u8>],
        at: usize,
        options: Vec<Vec<u8>>,
        alone: ColdNote,
    ) -> Result<CommandLine, ColdNote> {
        let target = words.get(at).ok_or(alone)?.clone();
        if target.is_empty() {
            return Err(ColdNote::ScriptMissing);
        }
        let before = words[..at].to_vec();
        Ok(CommandLine { before, options, kind: TargetKind::Script, target, used: at + 1 })
    }
}

/// How a file that may be a script begins.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// The name that it was reached by.
    pub path: &'a [u8],
    /// Its first bytes.
    pub bytes: &'a [u8],
    /// Whether it is a directory.
    pub is_directory: bool,
}

impl Program {
    /// A file that is executed as it is, with this argv.
    #[must_use]
    pub fn exec(file: Vec<u8>, argv: Vec<Vec<u8>>, note: Option<ColdNote>) -> Program {
        Program {
            runtime: RuntimeId::Exec,
            target: Target { kind: TargetKind::Script, name: file.clone() },
            interpreter: file,
            prefix: Vec::new(),
            options: Vec::new(),
            argv,
            written: None,
            env: EnvChanges::default(),
            directory: WorkingDirectory::Free,
            watch: Vec::new(),
            note,
        }
    }

    /// How many arguments the program itself gets.
    #[must_use]
    pub fn arguments(&self) -> usize {
        self.argv.len().saturating_sub(1)
    }

    /// How many of these the caller wrote themselves, at the end of the command line.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.argv.len().saturating_sub(self.written.as_ref().map_or(1, |written| written.says))
    }

    /// The file and the argv that execute this program cold, as without hob.
    #[must_use]
    pub fn cold_argv(&self) -> (&[u8], Vec<&[u8]>) {
        let (before, says) = self
            .written
            .as_ref()
            .map_or((&self.prefix, 0), |written| (&written.words, written.says));
        let behind = self.argv.get(says..).unwrap_or_default();
        (&self.interpreter, before.iter().chain(behind).map(Vec::as_slice).collect())
    }
}
