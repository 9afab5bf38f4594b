//! What the daemon and its workers say to each other. `docs/worker.md` tells a runtime's author
//! the same in words.

use std::borrow::Cow;

use crate::call::World;
use crate::codec::{Closed, Format, Plain};
use crate::cursor::{Cursor, DecodeError};
use crate::exit::Exit;
use crate::frames::{frames, numbers};
use crate::schema::{Numbers, Shape};
use crate::strings::Strings;

pub use crate::reply::Gone;

/// The descriptors of a [`Give`], in this order. `reply` is the caller's own connection, on which
/// the worker sends [`crate::reply::Ended`]. The last stands for as many as the frame names.
pub const GIVE_FDS: [&str; 6] =
    ["stdin", "stdout", "stderr", "working directory", "reply", "those of beyond"];

frames! {
    /// The first frame on a zygote's or standby's channel.
    frame Preload {
        /// Zygote or standby.
        role: Role as Loader,
        /// What the target is.
        kind: TargetKind,
        /// The script's absolute path, or the module's name; of a handler its file, a colon and its
        /// function; of a native program its file; of a web app its interface, a colon, its file, a colon and what is called.
        target: Vec<u8>,
        /// What `sys.orig_argv` holds before the target: the interpreter as it was named, and its
        /// options.
        prefix: Strings,
        /// The modules to import, in this order.
        modules: Strings,
        /// What `sys.argv` holds meanwhile: as many strings as imports may count, of which they may
        /// look at the first.
        argv: Strings,
        /// Volatile variables, which differ in each call: a module that reads one while it is
        /// imported is left to the call.
        volatile: Strings,
    }

    /// A worker is ready: a zygote to fork, a copy or standby to perform.
    frame Ready {
        /// Which of the three.
        role: Role,
        /// Its process id.
        pid: u32,
        /// Tasks in `/proc/self/task`.
        threads: u32,
        /// What the preload read and met, see `docs/worker.md`; empty for a copy.
        notes: Strings,
    }

    /// Fork a copy. Carries the copy's channel.
    frame Fork: Copy {
        /// The number of the worker that the copy will be.
        worker: u64,
        /// What the copy does before it says that it is ready.
        paid: Paid,
    }

    /// What came of a [`Fork`]. Carries a pidfd when it succeeded.
    frame Forked {
        /// The worker's number.
        worker: u64,
        /// Its process id, or 0: not forked, and `error` says why (`threads` when the zygote has
        /// more than one).
        pid: u32,
        /// Why it was not forked.
        error: Vec<u8>,
    }

    /// Perform this call. Carries [`GIVE_FDS`].
    frame Give<'a> {
        /// The call's number.
        call: u64,
        /// The process group in the worker's own terminal that the program joins; 0: none.
        group: u32,
        /// Umask, signals, limits.
        world: Cow<'a, World>,
        /// What the program sees as its argv: the script or module, then its arguments.
        argv: Cow<'a, Strings>,
        /// Its environment.
        env: Cow<'a, Strings> = "environment",
        /// The processors that it may run on, bit by bit from the first byte's lowest on; empty: as
        /// the worker has them.
        processors: &'a [u8],
        /// Which of 0 to 2 the program finds closed: bit 0 is 0.
        closed: u8 as Closed = "closed streams",
        /// The numbers at which the program has those of its descriptors that come behind the
        /// others, the lowest first.
        beyond: Cow<'a, Vec<u32>>,
    }

    /// A call's exit, from the worker that performed it.
    frame Finished: Copy {
        /// The call's number.
        call: u64,
        /// What the process will do: reported before teardown.
        exit: Exit,
        /// When the program's own code began.
        main_ns: u64 = "main",
        /// When it ended.
        finished_ns: u64 = "finished",
    }

    /// A worker is in its caller's process group from now on, and has what the terminal sends there.
    frame Joined: Copy {
        /// The call's number.
        call: u64,
        /// Since when.
        at_ns: u64 = "joined",
    }

    /// The worker cannot be what the call needs. It executes the cold command in its own place, before
    /// the program has begun.
    frame Executes: Copy {
        /// The call's number.
        call: u64,
        /// When it does.
        at_ns: u64 = "executes",
        /// What it could not take on.
        why: Unfit,
    }

    /// What a call loaded beyond the preload.
    frame Notes {
        /// The call's number.
        call: u64,
        /// Entries as in those of `ready`; or `U` alone, before the end of a call.
        notes: Strings,
    }

    /// Spans that a call's program has made itself. Said before the call's end.
    frame Spans {
        /// The call's number; of a message its id.
        call: u64,
        /// How many more there were than a call may have.
        dropped: u32,
        /// In the order of their begins, each as decimal numbers with a space behind each, and its
        /// name: when it began, in nanoseconds of the monotonic clock; how many nanoseconds it took;
        /// in which of these it was begun, from 1 on, or 0; 1 if it was not ended when the call
        /// ended, else 0.
        spans: Strings,
    }

    /// A worker cannot become ready.
    frame Failed {
        /// What happened, for a person; may have several lines.
        text: Vec<u8>,
    }
}

numbers! {
    /// What a worker process is for.
    enum Role {
        /// Performs no calls; is forked.
        Zygote = 0,
        /// Performs one call in its own process.
        Standby = 1,
        /// A fork of a zygote; performs one call.
        Copy = 2,
    }

    /// What the target of a program is.
    enum TargetKind: PartialOrd, Ord {
        /// A file that the interpreter runs.
        Script = 0,
        /// A module that the interpreter runs (`-m`).
        Module = 1,
        /// A function that handles messages: its file, a colon, its name.
        Handler = 2,
        /// A web app: its interface (`rack`, `wsgi`), a colon, its file, a colon, and what in the
        /// file is called, where the interface has a name for that.
        App = 3,
        /// Nothing yet: a zygote with the bare interpreter. Each of its copies is sent a `preload` of
        /// a script or module before its `give`.
        Bare = 4,
        /// The installed modules that a script loads, and nothing of its own: a zygote whose copies
        /// are told as those of a bare interpreter.
        Installed = 5,
        /// A class by its name; behind a last prefix string `-m` or `--module` a module of classes.
        Class = 6,
    }

    /// Why a worker executes the cold command in its own place.
    enum Unfit {
        /// The program is not what was loaded: it lies elsewhere, does not compile, or would find
        /// other modules.
        Program = 0,
        /// Signals that are ignored or blocked.
        Signals = 1,
        /// A limit.
        Limits = 2,
        /// The priority.
        Priority = 3,
        /// The processors that it may run on.
        Processors = 4,
        /// An encoding, which the runtime has decided on.
        Encodings = 5,
        /// The working directory.
        Directory = 6,
        /// The environment.
        Environment = 7,
        /// Descriptors: the runtime holds some of these numbers.
        Descriptors = 8,
        /// The program was edited, so that it begins otherwise than what was loaded.
        Edited = 9,
    }

    /// How a copy gets ready for its call.
    enum Paid {
        /// Not at all: its call is on its way.
        No = 0,
        /// It pays for its pages, and says that it is ready.
        Yes = 1,
        /// It pays for nothing, and says that it is ready, unless its call has come by then.
        Plain = 2,
    }
}

/// The role of a process that preloads: a copy is forked by one.
struct Loader;

impl Loader {
    const NUMBERS: Numbers =
        Numbers { values: Role::NUMBERS.values.split_at(Role::Copy as usize).0, ..Role::NUMBERS };
}

impl<'a> Format<'a, Role> for Loader {
    const SHAPE: Shape = Shape::Number(&Loader::NUMBERS);

    fn put(value: &Role, out: &mut Vec<u8>) {
        Plain::put(value, out);
    }

    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<Role, DecodeError> {
        match Plain::take(cursor, label)? {
            Role::Copy => Err(DecodeError::Value(label)),
            role @ (Role::Zygote | Role::Standby) => Ok(role),
        }
    }
}
