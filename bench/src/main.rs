//! Measures what the README says: `hob-bench NAME`. Every figure is one command; what is compared
//! is measured in the same run, in interleaved rounds, and must give the same results.
//!
//! Owns: the command line, and where results go. The figures are in `figures/`.

mod descriptors;
mod figures;
mod headline;
mod hob;
mod measure;
mod progress;
mod readme;
mod report;
mod stats;
mod venv;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use report::{Figure, Results};

const USAGE: &str =
    "usage: hob-bench [--hob FILE] [--python FILE] [--rounds N] [--quick] [--strict] COMMAND
  hello throughput commands pandas ahead soak receipts why messages stale
            measures one figure
  ab        hob ab: false alarms, and what it finds, beside bursting neighbours and hyperfine
  actors    hob-actor, its peers, and raw sockets in C
  hooks     hob hooks run beside programs in C, run-parts, Python and the JVM's ways
  http      hob serve beside servers that others wrote: Rack, WSGI, ASGI, files, WebSockets
  jvm       a class and a script of Clojure, sessions, many calls at once, beside nailgun
  ruby      a hello in Ruby, rspec, rake, jekyll, rubocop, warm and cold
  check     hob check of 36 endpoints as four kinds of users; what exports and metrics cost
  restarts  10,000 asks and tells while the daemon is restarted
  chaos     a thousand faults of chance, and what a fault before the call costs
  edits     the first call of a script, and the call right after an edit
  places    which part of the calls is warm where people are, in twelve places
  saved     what receipts call saved, against measured cold runs of the same arguments
  spans     what notes of spans cost a warm call
  same      other people's commands: the same cold and through hob? (installs some 600)
  worlds    what modules keep of the outside, in seventeen worlds: the same cold and through hob?
  moments   things of the moment that modules keep: new in each call?
  orders    what a program does before an import: there at the import, as cold?
  ends      objects that do something when they end: the same cold and through hob?
  nats      programs of other hosts beside bare async-nats (downloads its server)
  outbox    tells that are on the disk, against NATS JetStream (downloads its server)
  headline  measures a few rounds of what the README's table has, in ten minutes
  all       measures every figure, one after the other
  readme    renders the README's table from bench/results.json

  --hob FILE   the binary to measure (default: target/hob)
  --rounds N   how many rounds, instead of the figure's own number
  --quick      a tenth of the rounds, to see that everything works
  --only PART  one part of `hooks`: sequential peers wide busy python resident many jvm
               or of `why`: the name of one command
            or of `places`: the name of one, as the table has it
            or of `same`: python ruby work (what is not asked for its help too)
            or of `worlds`, `moments`, `ends`: a topic (a file's name), or a part of a question
            or of `orders`: words with commas, each a state, a writer, python, ruby or 3.12
            or of `http`: fork prefork foolsgold python static blobs websockets mounts idle soak
            or of `nats`: asks hooks
            or of `jvm`: java clojure session stdin storm, and scripts, which is no part of the whole
            or of `check`: endpoints peers exports metrics
            or of `chaos`: prices faults
            or of `actors`: ring_tell ring_ask ipc_ring ipc_ring_ask storm_1 storm_16 storm_tells idle
  --part K/N   the K-th of N parts of the programs of `worlds`, which takes some forty minutes
  --worlds A,B   only these worlds, beside the one where programs are taught
  --python FILE  another interpreter than the `python3` of PATH (worlds, moments, ends)
  --strict     fail when a target is missed, not only when a result is wrong";

/// What stays the same for all figures of a run.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    /// The repository.
    pub(crate) root: PathBuf,
    /// The binary to measure.
    pub(crate) hob: PathBuf,
    /// The real Python interpreter.
    pub(crate) python: PathBuf,
    rounds: Option<usize>,
    pub(crate) only: Option<String>,
    /// Which part of how many.
    pub(crate) part: (usize, usize),
    pub(crate) worlds: Vec<String>,
    pace: Pace,
    verdict: Verdict,
}

/// How thorough a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    Full,
    Quick,
}

/// What a missed target does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Told,
    Fails,
}

impl Setting {
    /// How many rounds, where a full run has `full`.
    pub(crate) fn rounds(&self, full: usize) -> usize {
        match (self.rounds, self.pace) {
            (Some(rounds), _) => rounds.max(1),
            (None, Pace::Full) => full,
            (None, Pace::Quick) => full.div_ceil(10).max(3),
        }
    }

    /// Whether this part of a figure is to be measured.
    pub(crate) fn is_part(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == name)
    }

    /// The same for one part of a figure, with so many rounds where nobody said how many, and little of
    /// what it does beside them.
    fn of_part(&self, only: Option<&str>, rounds: usize) -> Setting {
        let rounds = match (self.rounds, self.pace) {
            (Some(asked), _) => asked,
            (None, Pace::Full) => rounds,
            (None, Pace::Quick) => rounds.min(3),
        };
        let only = only.map(str::to_owned);
        Setting { only, rounds: Some(rounds), pace: Pace::Quick, ..self.clone() }
    }

    /// Whether it is only to be seen that everything works.
    pub(crate) fn is_quick(&self) -> bool {
        self.pace == Pace::Quick
    }
}

#[expect(clippy::print_stderr, reason = "what was wrong is told here, once")]
fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("hob-bench: {error:#}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode> {
    if std::env::args_os().nth(1).is_some_and(|first| first == figures::hooks::runner::COMMAND) {
        figures::hooks::runner::run(std::env::args_os().skip(2))?;
        return Ok(ExitCode::SUCCESS);
    }
    if std::env::args_os().nth(1).is_some_and(|first| first == figures::ab::COMMAND) {
        figures::ab::work(std::env::args().skip(2))?;
        return Ok(ExitCode::SUCCESS);
    }
    if figures::hosts::is_worker() {
        figures::hosts::work()?;
        return Ok(ExitCode::SUCCESS);
    }
    if std::env::args_os().nth(1).is_some_and(|first| first == "--help" || first == "-h") {
        say(USAGE);
        return Ok(ExitCode::SUCCESS);
    }
    descriptors::leave_inherited()?;
    let (setting, command) = parse(std::env::args().skip(1))?;
    match command.as_str() {
        "readme" => {
            readme::render(&setting.root)?;
            Ok(ExitCode::SUCCESS)
        }
        headline::NAME => headline::measure(&setting).map(|()| ExitCode::SUCCESS),
        "all" => measure(&setting, "all", &figures::ALL),
        // No figures of the README: they take long, and what they find is a fault or nothing.
        "stale" => measure(&setting, "stale", &[("stale", figures::stale::measure)]),
        "ab" => measure(&setting, "ab", &[("ab", figures::ab::measure)]),
        "actors" => measure(&setting, "actors", &[("actors", figures::actors::measure)]),
        "hooks" => measure(&setting, "hooks", &[("hooks", figures::hooks::measure)]),
        "ruby" => measure(&setting, "ruby", &[("ruby", figures::commands::ruby::measure)]),
        "jvm" => measure(&setting, "jvm", &[("jvm", figures::jvm::measure)]),
        "http" => measure(&setting, "http", &[("http", figures::http::measure)]),
        "outbox" => measure(&setting, "outbox", &[("outbox", figures::outbox::measure)]),
        "nats" => {
            let parts: [(&str, figures::Measure); 2] =
                [("asks", figures::hosts::measure), ("hooks", figures::hosts::hooks::measure)];
            let parts: Vec<_> =
                parts.into_iter().filter(|(name, _)| setting.is_part(name)).collect();
            measure(&setting, "nats", &parts)
        }
        "edits" => measure(&setting, "edits", &[("edits", figures::edits::measure)]),
        "places" => measure(&setting, "places", &[("places", figures::places::measure)]),
        "saved" => measure(&setting, "saved", &[("saved", figures::receipts::saved::measure)]),
        "check" => measure(&setting, "check", &[("check", figures::receipts::check::measure)]),
        "spans" => measure(&setting, "spans", &[("spans", figures::receipts::spans::measure)]),
        "same" => measure(&setting, "same", &[("same", figures::same::measure)]),
        "worlds" => measure(&setting, "worlds", &[("worlds", figures::suites::worlds)]),
        "moments" => measure(&setting, "moments", &[("moments", figures::suites::moments)]),
        "ends" => measure(&setting, "ends", &[("ends", figures::suites::ends)]),
        "orders" => measure(&setting, "orders", &[("orders", figures::suites::orders::measure)]),
        "restarts" => {
            measure(&setting, "restarts", &[("restarts", figures::messages::restarts::measure)])
        }
        "chaos" => measure(&setting, "chaos", &[("chaos", figures::chaos::measure)]),
        name => match figures::ALL.iter().find(|(known, _)| *known == name) {
            Some(one) => measure(&setting, name, std::slice::from_ref(one)),
            None => bail!("{USAGE}"),
        },
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<(Setting, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("bench/ has a parent")?;
    let mut setting = Setting {
        root: root.to_path_buf(),
        hob: root.join("target/hob"),
        python: PathBuf::new(),
        rounds: None,
        only: None,
        part: (1, 1),
        worlds: Vec::new(),
        pace: Pace::Full,
        verdict: Verdict::Told,
    };
    let mut command = None;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--hob" => setting.hob = arguments.next().context(USAGE)?.into(),
            "--python" => setting.python = arguments.next().context(USAGE)?.into(),
            "--rounds" => setting.rounds = Some(arguments.next().context(USAGE)?.parse()?),
            "--only" => setting.only = Some(arguments.next().context(USAGE)?),
            "--part" => setting.part = part(&arguments.next().context(USAGE)?).context(USAGE)?,
            "--worlds" => {
                let worlds = arguments.next().context(USAGE)?;
                setting.worlds = worlds.split(',').map(str::to_owned).collect();
            }
            "--quick" => setting.pace = Pace::Quick,
            "--strict" => setting.verdict = Verdict::Fails,
            _ if command.is_none() && !argument.starts_with('-') => command = Some(argument),
            _ => bail!("{USAGE}"),
        }
    }
    let command = command.context(USAGE)?;
    if command != "readme" {
        let named = (!setting.python.as_os_str().is_empty()).then_some(setting.python);
        setting.python = venv::interpreter(named.as_deref().unwrap_or(Path::new("python3")))?;
    }
    Ok((setting, command))
}

/// `2/6`: the second of six.
fn part(text: &str) -> Option<(usize, usize)> {
    let (part, parts) = text.split_once('/')?;
    let (part, parts) = (part.parse().ok()?, parts.parse().ok()?);
    (1..=parts).contains(&part).then_some((part, parts))
}

/// Measures figures, prints their tables, and writes `target/bench/NAME.json`.
fn measure(
    setting: &Setting,
    name: &str,
    figures: &[(&str, figures::Measure)],
) -> Result<ExitCode> {
    let mut measured = Vec::new();
    for (figure, measure) in figures {
        let figure: Figure = measure(setting).with_context(|| format!("measuring {figure}"))?;
        say(&figure.table());
        measured.push(figure);
        // Written after each figure: a long run that is stopped keeps what it has.
        keep(setting, name, &measured)?;
    }
    let missed: usize =
        measured.iter().map(|one| one.targets.iter().filter(|t| !t.met).count()).sum();
    let path = kept(setting, name);
    say(&format!("\n{missed} targets missed; results: {}", path.display()));
    Ok(match setting.verdict {
        Verdict::Fails if missed > 0 => ExitCode::FAILURE,
        Verdict::Fails | Verdict::Told => ExitCode::SUCCESS,
    })
}

/// Writes what was measured so far.
pub(crate) fn keep(setting: &Setting, name: &str, figures: &[Figure]) -> Result<()> {
    let machine = report::machine(venv::version(&setting.python)?);
    let schema = report::SCHEMA.to_owned();
    Results { schema, machine, figures: figures.to_vec() }.write(&kept(setting, name))
}

/// Where it is written.
fn kept(setting: &Setting, name: &str) -> PathBuf {
    let part = match setting.part {
        (_, 1) => String::new(),
        (part, parts) => format!("-{part}-of-{parts}"),
    };
    setting.root.join("target/bench").join(format!("{name}{part}.json"))
}

/// The one place where results are written for people.
#[expect(clippy::print_stdout, reason = "the tables are what a measurement is for")]
pub(crate) fn say(text: &str) {
    println!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_in_any_order_and_unknown_ones_are_refused() {
        let parse = |line: &str| parse(line.split(' ').map(str::to_owned));
        let (setting, command) = parse("readme --quick").unwrap();
        assert!(setting.is_part("wide"));
        assert_eq!((setting.rounds(100), command.as_str()), (10, "readme"));
        let one = parse("readme --only busy").unwrap().0;
        assert!(one.is_part("busy") && !one.is_part("wide"));
        assert_eq!(parse("--rounds 7 readme").unwrap().0.rounds(100), 7);
        assert_eq!(parse("readme --part 2/6").unwrap().0.part, (2, 6));
        assert!(parse("readme --part 7/6").is_err() && parse("readme --part 2").is_err());
        assert!(parse("--fast readme").is_err() && parse("--quick").is_err());
    }
}
