//! What the examples share: options, progress on a terminal, one line of JSON at the end.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

/// What can be asked of an example.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    pub(crate) rounds: u64,
    pub(crate) nodes: u64,
    pub(crate) messages: u64,
    pub(crate) ask: u64,
}

impl Options {
    /// From the command line: `--rounds`, `--nodes`, `--messages`, `--ask`, each with a number.
    /// None: help was asked for, and is printed.
    pub(crate) fn read(
        name: &str,
        about: &str,
        otherwise: Options,
    ) -> Result<Option<Options>, String> {
        let mut options = otherwise;
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            if word == "--help" || word == "-h" {
                let printed = writeln!(std::io::stdout(), "{}", otherwise.help(name, about));
                return printed.map(|()| None).map_err(|error| error.to_string());
            }
            let (key, value) = match word.split_once('=') {
                Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
                None => (word, words.next()),
            };
            let number = value.as_deref().and_then(|value| value.replace('_', "").parse().ok());
            let number = number.filter(|&number: &u64| number > 0);
            let number = number.ok_or_else(|| format!("{name}: {key} wants a number above 0"))?;
            match key.as_str() {
                "--rounds" => options.rounds = number,
                "--nodes" => options.nodes = number,
                "--messages" => options.messages = number,
                "--ask" => options.ask = number,
                "--forward" => {}
                _ => return Err(format!("{name}: there is no {key}; --help lists what there is")),
            }
        }
        Ok(Some(options))
    }

    /// What it does and takes.
    fn help(self, name: &str, about: &str) -> String {
        let Options { rounds, nodes, messages, ask } = self;
        format!(
            "{about}\n\nusage: {name} [OPTION N]...\n  \
             --rounds N    how often ({rounds})\n  \
             --nodes N     how many actors, or shards for `ask` ({nodes})\n  \
             --messages N  how many messages ({messages})\n  \
             --ask N       how many asks are open at once, where the example asks ({ask})\n  \
             --forward 1   by forwarding, where the example is `ring_ask`\n\n\
             It prints one line of JSON."
        )
    }
}

/// A line on a terminal that says where it is; nothing elsewhere.
#[derive(Debug)]
pub(crate) struct Progress {
    name: &'static str,
    shows: bool,
}

impl Progress {
    pub(crate) fn start(name: &'static str) -> Progress {
        Progress { name, shows: std::io::stderr().is_terminal() }
    }

    pub(crate) fn say(&self, what: &str) {
        if self.shows {
            let _ = write!(std::io::stderr(), "\r\x1b[K{}: {what}", self.name);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shows {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// The line at the end.
#[derive(Debug)]
pub(crate) struct Line(String);

impl Line {
    pub(crate) fn of(example: &str, options: &Options, elapsed: Duration, hops: u64) -> Line {
        let Options { rounds, nodes, messages, ask } = *options;
        let ns = elapsed.as_nanos();
        #[expect(clippy::cast_precision_loss, reason = "for people to read")]
        let per_hop = ns as f64 / hops.max(1) as f64;
        let line = format!(
            "{{\"example\":\"{example}\",\"nodes\":{nodes},\"rounds\":{rounds},\
             \"messages\":{messages},\"ask\":{ask},\"hops\":{hops},\"elapsed_ns\":{ns},\
             \"per_hop_ns\":{per_hop:.1}"
        );
        Line(line)
    }

    /// One more number.
    pub(crate) fn with(mut self, name: &str, value: impl std::fmt::Display) -> Line {
        let _ = write!(self.0, ",\"{name}\":{value}");
        self
    }

    /// With the most memory that the process has had.
    pub(crate) fn print(self) -> std::io::Result<()> {
        let line = self.with("peak_rss_bytes", peak_rss_bytes());
        writeln!(std::io::stdout(), "{}}}", line.0)
    }
}

fn status_bytes(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

/// The most that it has had.
pub(crate) fn peak_rss_bytes() -> u64 {
    status_bytes("VmHWM:")
}
