//! The worlds that callers have: what stands on standard input, where they are, what they have set.
//!
//! Owns: the list, and how a run is put into each. What happens in a terminal is in `terminal.rs`.

use std::path::Path;

use rustix::pipe::PipeFlags;

use super::super::{input, with_input};
use crate::run::Run;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    /// Where programs are taught: text in a pipe, a directory, few variables.
    Base,
    File,
    Nonblocking,
    Closed,
    Terminal,
    Directory,
    Environment,
    Arguments,
    Umask,
    Limits,
    Signals,
    Priority,
    Links,
    Home,
    Zone,
    Locale,
}

/// All but the first, which comes before and after the others.
pub(super) const OTHERS: [(Around, &str); 15] = [
    (Around::File, "file"),
    (Around::Nonblocking, "nonblocking"),
    (Around::Closed, "closed"),
    (Around::Directory, "directory"),
    (Around::Environment, "environment"),
    (Around::Arguments, "arguments"),
    (Around::Umask, "umask"),
    (Around::Limits, "limits"),
    (Around::Signals, "signals"),
    (Around::Priority, "priority"),
    (Around::Links, "links"),
    (Around::Home, "home"),
    (Around::Zone, "zone"),
    (Around::Locale, "locale"),
    (Around::Terminal, "terminal"),
];

/// Where a file on standard input has been read up to.
const OFFSET: u64 = 7;
const LIMITS: [&str; 5] = [
    "--nofile=321:654",
    "--core=0:0",
    "--stack=4194304:8388608",
    "--nproc=4000:5000",
    "--fsize=99999999",
];

impl Around {
    /// Puts a run into this world.
    pub(super) fn around(self, run: Run, fixture: &Path) -> Run {
        let below = |name: &str| fixture.join(name);
        // What whoever runs the suite ignores is not part of a world.
        let run = with_input(run)
            .under(&["env", "--default-signal=HUP,INT,QUIT,TERM"])
            .within(below("here"))
            .env("HOME", below("home"))
            .env("APP_MODE", "fast")
            .env("APP_COUNT", "1")
            .in_own_group();
        match self {
            Around::Base | Around::Links | Around::Terminal => run,
            Around::File => run.stdin_at(input(), OFFSET),
            Around::Nonblocking => run.stdin_filled(input(), PipeFlags::NONBLOCK),
            Around::Closed => after(run, "exec <&-"),
            Around::Directory => run.within(below("there")),
            Around::Environment => environment(run, fixture),
            Around::Arguments => run.args(&["--verbose", "x"]),
            Around::Umask => after(run, "umask 037"),
            Around::Limits => {
                let words: Vec<&str> = ["prlimit"].iter().chain(&LIMITS).copied().collect();
                run.under(&words)
            }
            Around::Signals => {
                run.under(&["env", "--ignore-signal=HUP,INT,QUIT", "--block-signal=USR1"])
            }
            Around::Priority => run.under(&["nice", "-n", "5"]),
            Around::Home => run.env("HOME", below("other-home")),
            Around::Zone => run.env("TZ", "America/New_York"),
            Around::Locale => run.env("LC_ALL", "POSIX"),
        }
    }
}

/// Other values, and new variables: none that is always part of the key, for its zygote would
/// hide what is not followed.
fn environment(run: Run, fixture: &Path) -> Run {
    let mut path = run.environment().iter().find(|(name, _)| name == "PATH").cloned();
    let mut path = path.take().map(|(_, value)| value).unwrap_or_default();
    path.push(":");
    path.push(fixture.join("tools"));
    run.env("PATH", path)
        .env("APP_MODE", "slow")
        .env("APP_COUNT", "2")
        .env("APP_NEW", "new")
        .env("APP_DEBUG", "1")
        .env("COLUMNS", "132")
        .env("TMPDIR", fixture.join("tmp"))
        .env("https_proxy", "http://proxy.example:3128")
        .env("no_proxy", "internal.example")
        .env("BROWSER", "true")
        .env("SSL_CERT_FILE", fixture.join("file"))
        .env("SSLKEYLOGFILE", fixture.join("tmp/keys"))
        .env("LOGNAME", "somebody")
        .env("NO_COLOR", "1")
        .env("XDG_CACHE_HOME", fixture.join("tmp"))
        .env("TERM", "xterm")
}

/// Shell commands that run first, in a shell whose own variables are taken out again.
fn after(run: Run, commands: &str) -> Run {
    let script = format!("{commands}\nexec env -u _ -u PWD -u OLDPWD -u SHLVL \"$@\"");
    run.under(&["bash", "-c", &script, "bash"])
}
