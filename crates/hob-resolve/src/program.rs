//! What a resolution answers: the program, and how to execute it cold.
//!
//! These are plain records. An interpreter's command line is always `prefix` followed by `argv`,
//! for scripts and for modules alike; nothing else needs to know where `-m` stood.

/// What would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A script or module in a CPython interpreter.
    Python(PythonProgram),
    /// Anything else: executed as it is.
    Exec(ExecProgram),
}

/// Whether a Python program is a file or a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TargetKind {
    /// A file.
    Script,
    /// `-m NAME`.
    Module,
}

/// Whether the caller's working directory decides which modules are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkingDirectory {
    /// It does not: the same warm state serves every directory.
    Free,
    /// It does (a module target, or relative entries in `PYTHONPATH`): part of the key.
    Keyed,
}

/// Why something that involves an interpreter is nevertheless only executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColdNote {
    /// `python3 -c CODE`.
    InlineCode,
    /// `python3 -`: the program comes from standard input.
    StandardInput,
    /// `python3` alone, or `-i`.
    Interactive,
    /// An interpreter option that is not performed warm (`-V`, `-h`, `-v`, `-x`, ...).
    UnknownOption,
    /// A directory, a zip archive, or compiled code in place of a script.
    Archive,
    /// The script does not exist or cannot be read: the interpreter itself says so best.
    ScriptMissing,
    /// The executable changes the user or group.
    SetId,
    /// A shim that is not understood wholly (a hook, an unknown layout, a missing version).
    Shim,
}

/// A script or module in a CPython interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonProgram {
    /// Absolute path of the executable to start: a virtual environment's own `bin/python`, never
    /// what it links to, since the interpreter finds its prefix from this name.
    pub interpreter: Vec<u8>,
    /// `sys.orig_argv` before the target: the interpreter as the caller (or the kernel) names it,
    /// its options, and for a module also the `-m`.
    pub prefix: Vec<Vec<u8>>,
    /// The interpreter options alone, one string each, values attached (`-u`, `-Wdefault`).
    pub options: Vec<Vec<u8>>,
    /// Script or module.
    pub kind: TargetKind,
    /// The script's absolute path as `__file__` shows it, or the module's name.
    pub target: Vec<u8>,
    /// `sys.argv` as cold, but that a module is named by its name: the script as the caller or
    /// the kernel names it, then the arguments.
    pub argv: Vec<Vec<u8>>,
    /// Environment changes that a skipped shim would have made.
    pub set: Vec<(Vec<u8>, Vec<u8>)>,
    /// Variables that a skipped shim would have removed.
    pub unset: Vec<Vec<u8>>,
    /// Whether the working directory is part of the key.
    pub cwd: WorkingDirectory,
    /// Absolute paths whose change changes this resolution; some of them may not exist.
    pub watch: Vec<Vec<u8>>,
}

impl PythonProgram {
    /// The file and the argv that execute this program cold, as without hob.
    #[must_use]
    pub fn cold_argv(&self) -> (&[u8], Vec<&[u8]>) {
        let argv = self.prefix.iter().chain(&self.argv).map(Vec::as_slice).collect();
        (&self.interpreter, argv)
    }
}

/// Anything that is executed as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecProgram {
    /// The path for `execve`; a relative one counts from the caller's working directory.
    pub file: Vec<u8>,
    /// The argv, `argv[0]` as given.
    pub argv: Vec<Vec<u8>>,
    /// Environment changes: the guard of [`crate::own`], or nothing, since whatever shim there is
    /// runs itself.
    pub set: Vec<(Vec<u8>, Vec<u8>)>,
    /// Why it is only executed, if an interpreter or a shim was recognised.
    pub note: Option<ColdNote>,
}

impl ExecProgram {
    /// The file and argv that `execvp` falls back to when the kernel answers `ENOEXEC`: the shell
    /// reads the file. That is how a script without a `#!` line has always worked.
    #[must_use]
    pub fn shell_argv(&self) -> (&'static [u8], Vec<&[u8]>) {
        let mut argv: Vec<&[u8]> = vec![b"/bin/sh", &self.file];
        argv.extend(self.argv.iter().skip(1).map(Vec::as_slice));
        (b"/bin/sh", argv)
    }
}
