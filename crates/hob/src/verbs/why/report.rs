//! What is said of a program: its phases, its dearest imports, and what warmth would save.
//!
//! Pure: runs in, a [`Report`] out. `hob.why/1` is its JSON; a field is added,
//! never changed. `text` lays it out for people.

use serde::Serialize;

use hob_resolve::{ColdNote, Program};
use hob_wire::exit::Exit;

use super::imports::{self, DEAREST, Dear, Stamps};
use super::loader::Kind;
use super::repeated::Repeated;
use super::run::Seen;
use super::split::{self, PhaseTime, median};
use super::trial::{Trial, Tried};

/// Where no warm call can be made, what one costs that does nothing, as a multiple in tenths of
/// what it costs this machine to start a small static program and wait for it.
const CALL_TENTHS: u64 = 35;
/// However quick or busy the machine was in that moment, a call costs no less and no more.
const CALL_NS: std::ops::RangeInclusive<u64> = 400_000..=6_000_000;
/// A forked copy touches pages that it shares with its zygote, which a fresh process does not:
/// its own code takes this much longer, in hundredths.
const COPY_PERCENT: u64 = 115;
/// What the stamping file imports itself, which therefore has no stamp.
const STAMPING: [&str; 2] = ["atexit", "time"];

/// The schema of the JSON.
pub const SCHEMA: &str = "hob.why/1";

/// Where a cold start's time goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// What was run.
    pub program: ProgramPart,
    /// How often it was run plain; it was run as often again, watched.
    pub runs: usize,
    /// How it ended.
    pub exit: ExitPart,
    /// The median wall time of the plain runs.
    pub wall_us: u64,
    /// The same of the watched runs.
    pub watched_us: u64,
    /// How often a watched run was held up.
    pub stops: usize,
    /// They add up to `wall_us`.
    pub phases: Vec<PhaseTime>,
    /// Absent where imports cannot be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imports: Option<ImportsPart>,
    /// What warmth would save.
    pub warm: WarmPart,
    /// What a reader should know of these figures.
    pub notes: Vec<String>,
}

/// What was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProgramPart {
    /// As it was typed.
    pub name: String,
    /// The file or module that it resolved to.
    pub target: String,
    /// `python`, `shell`, `ruby`, `node`, `jvm`, `perl` or `native`.
    pub runtime: &'static str,
    /// The interpreter of a Python program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// How many arguments there were.
    pub arguments: usize,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExitPart {
    /// With this code.
    Code(u8),
    /// By this signal.
    Signal(u8),
}

/// The imports of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportsPart {
    /// How many there were after the interpreter's own.
    pub count: usize,
    /// The dearest, by their own time.
    pub dearest: Vec<Dear>,
}

/// What warmth would save.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WarmPart {
    /// Whether hob keeps such a program warm.
    pub hosted: bool,
    /// Why not, or why nothing is predicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
    /// How long a warm call would take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_us: Option<u64>,
    /// Of what that is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// The warm calls that the prediction comes from; absent where it is estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried: Option<TriedPart>,
    /// The modules that each call imports itself; absent where that could not be found out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated: Option<RepeatedPart>,
    /// What that saves; negative where warmth would be slower.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saves_us: Option<i64>,
    /// The one thing that follows from all of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// What warm calls did take, by their receipts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredPart>,
    /// The command to type next.
    pub next: String,
}

/// Of what a predicted warm call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Parts {
    /// The call itself: a warm call of an empty script, on this machine, now.
    pub call_us: u64,
    /// The program's own work: `main`, and what the tail has of it. In a trial, the rest.
    pub own_us: u64,
    /// The imports that each call repeats.
    pub imports_us: u64,
}

/// What a warm call takes beside a cold one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Warm calls.
    pub warm: Figure,
    /// Cold runs.
    pub cold: Figure,
    /// Where the warm figure comes from: `tried`, `receipts` or `estimate`. The first that there is.
    pub from: &'static str,
}

/// A median with its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// The median.
    pub us: u64,
    /// The lower and the upper quartile; both the median where these are not known.
    pub low_us: u64,
    /// See there.
    pub high_us: u64,
    /// How many calls it comes from; none of an estimate.
    pub calls: usize,
}

/// Modules that are imported by each call, since they do something that no zygote may do for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepeatedPart {
    /// How many.
    pub modules: usize,
    /// How many of them for which reason: the word of `docs/worker.md`.
    pub why: std::collections::BTreeMap<String, usize>,
    /// How many look whether they have a terminal: these too, where a call has one.
    pub in_terminal: usize,
    /// The statement after which nothing is loaded ahead, as `FILE:LINE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// The first statement for which a module is left to each call, as `FILE:LINE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// What they took together in the middle run, without what they import that is there already.
    pub self_us: u64,
    /// The dearest of them.
    pub dearest: Vec<RepeatedModule>,
}

/// A module that is imported by each call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepeatedModule {
    /// Its name.
    pub name: String,
    /// What it took, without what it imported itself.
    pub self_us: u64,
    /// The word of `docs/worker.md` for why.
    pub why: String,
}

/// Warm calls of the program that `hob why` made, in a daemon of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TriedPart {
    /// How many were measured.
    pub calls: usize,
    /// Their lower and their upper quartile.
    pub low_us: u64,
    /// See there.
    pub high_us: u64,
}

/// Warm calls of the same program with as many arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MeasuredPart {
    /// How many receipts.
    pub calls: usize,
    /// Their median.
    pub p50_us: u64,
}

/// One round: a plain run and a watched one, with what the program itself stamped.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) plain: Seen,
    pub(super) watched: Seen,
    pub(super) stamps: Option<Stamps>,
}

/// What is known before anything is run, and from receipts.
#[derive(Debug)]
pub(super) struct Known<'a> {
    pub(super) argv: &'a [&'a [u8]],
    pub(super) program: &'a Program,
    /// What a warm call costs that does nothing.
    pub(super) call_ns: u64,
    /// What became of warm calls of the program.
    pub(super) trial: Trial,
    /// The modules that each warm call imports itself, if that could be found out.
    pub(super) repeated: Option<Repeated>,
    pub(super) measured: Option<MeasuredPart>,
    /// The command to type next.
    pub(super) next: String,
}

/// The report on some rounds; there is at least one.
pub(super) fn report(known: &Known<'_>, rounds: &[Round]) -> Report {
    let wall = |of: &dyn Fn(&Round) -> &Seen| {
        median(rounds.iter().map(|round| of(round).ended_ns - of(round).begun_ns).collect())
    };
    let cuts: Vec<_> =
        rounds.iter().map(|round| split::cut(&round.watched, round.stamps.as_ref())).collect();
    let wall_ns = wall(&|round| &round.plain);
    let fitted = split::fit(&cuts, wall_ns);
    let middle = middle(rounds);
    // What disturbs a run only adds to it, and a warm call is too short to be disturbed much.
    let own_ns = split::low(cuts.iter().map(|cut| cut.ns[4] + cut.own_tail_ns).collect());
    let repeated = split::low(rounds.iter().map(|round| repeated_ns(known, round)).collect());
    let estimated = Parts {
        call_us: known.call_ns / 1000,
        own_us: own_us(own_ns),
        imports_us: own_us(repeated),
    };
    let parts = match &known.trial {
        Trial::Warm(tried) => parts(tried, estimated),
        Trial::Not | Trial::Cold(_) | Trial::Differs => estimated,
    };
    let stamped = middle.stamps.as_ref().is_some_and(|one| one.installed_ns.is_some());
    let kind = middle.watched.kind;
    Report {
        schema: SCHEMA,
        program: program(known, kind),
        runs: rounds.len(),
        exit: exit(middle.plain.status),
        wall_us: wall_ns / 1000,
        watched_us: wall(&|round| &round.watched) / 1000,
        stops: middle.watched.stops_ns.len(),
        phases: split::phases(&fitted),
        imports: dearest(middle, stamped),
        warm: warm(known, middle, cold_figure(rounds), parts),
        notes: notes(known, rounds, stamped),
    }
}

/// What a warm call costs that does nothing, by what a start of hob costs.
pub(super) fn estimated_call_ns(client_ns: u64) -> u64 {
    let call_ns = client_ns.saturating_mul(CALL_TENTHS) / 10;
    call_ns.clamp(*CALL_NS.start(), *CALL_NS.end())
}

/// The modules that the middle run imported, in the order in which their imports began.
pub(super) fn imported(rounds: &[Round]) -> Vec<&str> {
    let imports = middle(rounds).stamps.as_ref().map_or(&[][..], |stamps| &stamps.imports);
    let mut begun: Vec<_> = imports.iter().map(|one| (one.begin_ns, one.name.as_str())).collect();
    begun.sort_unstable();
    let names = STAMPING.into_iter().chain(begun.into_iter().map(|(_, name)| name));
    let mut seen = std::collections::HashSet::new();
    names.filter(|name| seen.insert(*name)).collect()
}

/// What the imports of a run took that each warm call repeats, without what those import that is
/// there already.
fn repeated_ns(known: &Known<'_>, round: &Round) -> u64 {
    let (Some(repeated), Some(stamps)) = (&known.repeated, &round.stamps) else { return 0 };
    let all = imports::dearest(&stamps.imports, stamps.installed_ns.unwrap_or(0));
    let each = all.iter().filter(|one| repeated.always.contains_key(&one.name));
    each.map(|one| one.self_us * 1000).sum()
}

/// How long a program that has this much to do by itself takes for it in a copy.
fn own_us(own_ns: u64) -> u64 {
    own_ns.saturating_mul(COPY_PERCENT) / 100_000
}

/// Of what a tried call is made: what the call itself costs was tried in the same turns, what is
/// imported again is known from the rounds, and the rest is the program's own.
fn parts(tried: &Tried, estimated: Parts) -> Parts {
    let whole_us = tried.ns / 1000;
    let call_us = estimated.call_us.min(whole_us);
    let imports_us = estimated.imports_us.min(whole_us - call_us);
    Parts { call_us, own_us: whole_us - call_us - imports_us, imports_us }
}

/// The round whose watched run is the middle one.
fn middle(rounds: &[Round]) -> &Round {
    let mut order: Vec<&Round> = rounds.iter().collect();
    order.sort_by_key(|round| round.watched.ended_ns - round.watched.begun_ns);
    order[order.len() / 2]
}

fn program(known: &Known<'_>, kind: Kind) -> ProgramPart {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let named = if known.argv[0] == b"-m" { 1 } else { 0 };
    let hosted = known.program.is_hosted();
    let runtime = if hosted { known.program.row().name } else { kind.word() };
    ProgramPart {
        name: text(known.argv[named]),
        target: text(&known.program.target.name),
        runtime,
        interpreter: known.program.interpreter().map(text),
        arguments: arguments(known),
    }
}

/// As a receipt counts them.
pub(super) fn arguments(known: &Known<'_>) -> usize {
    known.program.arguments()
}

fn exit(status: u32) -> ExitPart {
    match Exit::from_wait_status(status) {
        Exit::Code(code) => ExitPart::Code(code),
        Exit::Signal(signal) => ExitPart::Signal(signal),
    }
}

fn dearest(middle: &Round, stamped: bool) -> Option<ImportsPart> {
    let seen = &middle.watched;
    let mut dearest = match &middle.stamps {
        Some(stamps) if stamped => {
            let from_ns = split::begin_of_import(seen.script_ns?, Some(stamps));
            imports::dearest(&stamps.imports, from_ns)
        }
        Some(_) => return None,
        None if seen.kind.is_watched_while_loading() => {
            let modules: Vec<_> =
                seen.opened.iter().filter(|one| seen.kind.is_module(&one.path)).collect();
            imports::dearest_opened(&modules)
        }
        None => return None,
    };
    let count = dearest.len();
    dearest.truncate(DEAREST);
    Some(ImportsPart { count, dearest })
}

/// What the plain runs took.
fn cold_figure(rounds: &[Round]) -> Figure {
    let wall = |round: &Round| (round.plain.ended_ns - round.plain.begun_ns) / 1000;
    let all: Vec<u64> = rounds.iter().map(wall).collect();
    let (us, (low_us, high_us)) = (median(all.clone()), split::quartiles(all));
    Figure { us, low_us, high_us, calls: rounds.len() }
}

/// Of what is known of warm calls the nearest to what a cold run is: tried in the same minute, then
/// receipts, then an estimate.
fn verdict(warm: &WarmPart, cold: Figure) -> Option<Verdict> {
    let us = warm.predicted_us?;
    let (figure, from) = match (warm.tried, warm.measured) {
        (Some(TriedPart { calls, low_us, high_us }), _) => {
            (Figure { us, low_us, high_us, calls }, "tried")
        }
        (None, Some(MeasuredPart { calls, p50_us: us })) => {
            (Figure { us, low_us: us, high_us: us, calls }, "receipts")
        }
        (None, None) => (Figure { us, low_us: us, high_us: us, calls: 0 }, "estimate"),
    };
    Some(Verdict { warm: figure, cold, from })
}

fn warm(known: &Known<'_>, middle: &Round, cold: Figure, parts: Parts) -> WarmPart {
    let wall_us = cold.us;
    let why_not = why_not_hosted(known.program, middle);
    let stamps = middle.stamps.as_ref();
    let hosted = why_not.is_none();
    let unseen = hosted && stamps.is_none_or(|stamps| stamps.installed_ns.is_none());
    let tried_warm = matches!(known.trial, Trial::Warm(_));
    let why_not = if unseen && !tried_warm {
        Some(
            "which of its imports a warm call repeats is not known, and no warm call of it was \
             tried: nothing is predicted"
                .to_owned(),
        )
    } else {
        why_not
    };
    let parts = Some(parts).filter(|_| why_not.is_none());
    let predicted_us = parts.map(|parts| parts.call_us + parts.own_us + parts.imports_us);
    let repeated = known.repeated.as_ref().filter(|_| predicted_us.is_some());
    let tried = match &known.trial {
        Trial::Warm(tried) if predicted_us.is_some() => Some(TriedPart {
            calls: tried.calls,
            low_us: tried.low_ns / 1000,
            high_us: tried.high_ns / 1000,
        }),
        Trial::Warm(_) | Trial::Not | Trial::Cold(_) | Trial::Differs => None,
    };
    let mut warm = WarmPart {
        verdict: None,
        hosted,
        why_not,
        predicted_us,
        parts,
        tried,
        repeated: repeated.map(|repeated| repeats(repeated, middle)),
        saves_us: predicted_us.map(|us| wall_us.cast_signed().saturating_sub_unsigned(us)),
        measured: known.measured,
        next: known.next.clone(),
    };
    warm.verdict = verdict(&warm, cold);
    warm
}

fn repeats(repeated: &Repeated, middle: &Round) -> RepeatedPart {
    let costs = middle
        .stamps
        .as_ref()
        .map(|stamps| imports::dearest(&stamps.imports, stamps.installed_ns.unwrap_or(0)));
    let costs = costs.unwrap_or_default();
    // What only start-up code imports does not come after anything of the program's.
    let begun: std::collections::HashSet<&str> =
        costs.iter().map(|one| one.name.as_str()).collect();
    let counts = |(name, why): &(&String, &String)| {
        why.as_str() != super::repeated::LATER || begun.contains(name.as_str())
    };
    let always: Vec<_> = repeated.always.iter().filter(counts).collect();
    let named = costs.iter().filter_map(|Dear { name, self_us, .. }| {
        let why = repeated.always.get(name)?.clone();
        Some(RepeatedModule { name: name.clone(), self_us: *self_us, why })
    });
    let mut dearest: Vec<RepeatedModule> = named.collect();
    let self_us = dearest.iter().map(|one| one.self_us).sum();
    dearest.truncate(DEAREST);
    let mut why = std::collections::BTreeMap::new();
    for (_, reason) in &always {
        *why.entry((*reason).clone()).or_insert(0) += 1;
    }
    let (modules, in_terminal) = (always.len(), repeated.in_terminal);
    let (stopped, first) = (repeated.stopped.clone(), repeated.first.clone());
    RepeatedPart { modules, why, in_terminal, stopped, first, self_us, dearest }
}

fn why_not_hosted(program: &Program, middle: &Round) -> Option<String> {
    let version = middle.stamps.as_ref().and_then(|stamps| stamps.version);
    if program.is_hosted() {
        let row = program.row();
        let (major, minor) = version.filter(|version| !row.supports(Some(*version)))?;
        return Some(format!("hob keeps {} warm, and this is {major}.{minor}", row.title));
    }
    Some(match program.note {
        Some(ColdNote::InlineCode) => {
            "code on the command line is not kept warm; put it into a file".to_owned()
        }
        Some(
            ColdNote::StandardInput
            | ColdNote::Interactive
            | ColdNote::UnknownOption
            | ColdNote::Archive
            | ColdNote::ScriptMissing
            | ColdNote::Shim,
        ) => "an interpreter used in this way is not kept warm".to_owned(),
        Some(ColdNote::SetId) => {
            "it changes its user or group, and such a program always runs cold".to_owned()
        }
        None => match middle.watched.kind {
            Kind::Native => "hob keeps no machine code warm: it starts as it is".to_owned(),
            Kind::Python => {
                "another program starts it; name the Python script itself to have it kept warm"
                    .to_owned()
            }
            kind @ (Kind::Shell | Kind::Ruby | Kind::Node | Kind::Jvm | Kind::Perl) => {
                format!("hob does not keep the {} runtime warm yet", kind.word())
            }
        },
    })
}

fn notes(known: &Known<'_>, rounds: &[Round], stamped: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let middle = middle(rounds);
    let seen = &middle.watched;
    if middle.stamps.is_some() && !stamped {
        notes.push(
            "its imports could not be stamped, and stand in `main`: the interpreter is too old, or \
             was told to ignore PYTHONPATH (-E, -I) or `site` (-S)"
                .to_owned(),
        );
    }
    if seen.executions > 1 {
        notes.push(format!(
            "{} files were executed one after the other; `exec` lasts until the last of them",
            seen.executions
        ));
    }
    if let (Some(file), true) = (&seen.handed_to, known.program.is_hosted()) {
        let file = String::from_utf8_lossy(file);
        notes.push(format!(
            "a warm call is warm until the program executes {file} in its own place, which starts \
             cold in each call; call that by itself to have it warm"
        ));
    }
    if seen.script_ns.is_none() && seen.kind != Kind::Native {
        notes.push("no script was seen being opened, so there is no `start`".to_owned());
    }
    if known.program.note == Some(ColdNote::SetId) {
        notes.push(
            "it is set-user-ID or set-group-ID; being watched, it ran without that".to_owned(),
        );
    }
    let statuses = rounds.iter().flat_map(|round| [round.plain.status, round.watched.status]);
    if statuses.into_iter().any(|status| status != middle.plain.status) {
        notes.push("it did not end in the same way each time: the runs differ".to_owned());
    }
    match &known.trial {
        Trial::Cold(reason) => notes.push(format!(
            "calls of it that were tried found no warm state of their own (`{reason}`), so what a warm one takes is \
             estimated"
        )),
        Trial::Differs => notes.push(
            "warm calls of it that were tried did not end as it does cold, so what one takes is \
             estimated; `hob verify` shows the difference"
                .to_owned(),
        ),
        Trial::Not | Trial::Warm(_) => {}
    }
    let walls = rounds.iter().map(|round| round.plain.ended_ns - round.plain.begun_ns);
    if let (Some(least), Some(most)) = (walls.clone().min(), walls.max())
        && most > least.saturating_mul(2)
    {
        let (least, most) = (least / 1_000_000, most / 1_000_000);
        notes.push(format!(
            "the machine was busy, or the runs differ: they took from {least} to {most} ms"
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use hob_resolve::{Target, TargetKind};
    use hob_runtimes::RuntimeId;

    fn python() -> Program {
        let argv = vec![b"x.py".to_vec(), b"a".to_vec()];
        Program {
            runtime: RuntimeId::Python,
            interpreter: b"/usr/bin/python3".to_vec(),
            prefix: vec![b"python3".to_vec()],
            target: Target { kind: TargetKind::Script, name: b"/srv/x.py".to_vec() },
            ..Program::exec(Vec::new(), argv, None)
        }
    }

    fn exec(note: Option<ColdNote>) -> Program {
        let argv = vec![b"x".to_vec()];
        Program::exec(b"/bin/x".to_vec(), argv, note)
    }

    /// 100 ms cold, 10 ms of that in `main`.
    fn round(kind: Kind, version: Option<(u32, u32)>) -> Round {
        let seen = Seen {
            executed_ns: Some(1_000_000),
            entry_ns: Some(2_000_000),
            script_ns: Some(80_000_000),
            last_byte_ns: Some(90_000_000),
            leaving_ns: Some(99_000_000),
            ended_ns: 100_000_000,
            kind,
            ..Seen::default()
        };
        let stamps = (kind == Kind::Python).then(|| Stamps {
            installed_ns: version.map(|_| 50_000_000),
            version,
            finalising_ns: Some(89_000_000),
            ..Stamps::default()
        });
        Round { plain: seen.clone(), watched: seen, stamps }
    }

    fn of(program: &Program, rounds: &[Round]) -> Report {
        with(program, rounds, None)
    }

    fn with(program: &Program, rounds: &[Round], repeated: Option<Repeated>) -> Report {
        let argv: [&[u8]; 2] = [b"x.py", b"a"];
        let next = "hob run x.py a".to_owned();
        let (call_ns, trial) = (1_500_000, Trial::Not);
        report(
            &Known { argv: &argv, program, call_ns, trial, repeated, measured: None, next },
            rounds,
        )
    }

    #[test]
    fn what_was_tried_is_what_is_predicted_and_its_parts_add_up() {
        let argv: [&[u8]; 1] = [b"x.py"];
        let check = |trial: &Trial, want: (u64, u64, u64), notes: usize| {
            let known = Known {
                argv: &argv,
                program: &python(),
                call_ns: 1_500_000,
                trial: trial.clone(),
                repeated: None,
                measured: None,
                next: String::new(),
            };
            let report = report(&known, &[round(Kind::Python, Some((3, 11)))]);
            let parts = report.warm.parts.unwrap();
            assert_eq!(
                (report.warm.predicted_us, parts.call_us, parts.own_us),
                (Some(want.0), want.1, want.2)
            );
            assert_eq!((report.warm.tried.is_some(), report.notes.len()), (notes == 0, notes));
        };
        let tried = |ns| Trial::Warm(Tried { calls: 9, ns, low_ns: ns, high_ns: ns });
        check(&tried(5_000_000), (5_000, 1_500, 3_500), 0);
        check(&tried(1_000_000), (1_000, 1_000, 0), 0);
        let unseen = Round { stamps: None, ..round(Kind::Python, Some((3, 11))) };
        let known = Known {
            argv: &argv,
            program: &python(),
            call_ns: 1_500_000,
            trial: tried(5_000_000),
            repeated: None,
            measured: None,
            next: String::new(),
        };
        let warm = report(&known, &[unseen]).warm;
        assert_eq!((warm.predicted_us, warm.why_not), (Some(5_000), None), "a call was tried");
        check(&Trial::Cold("memory".to_owned()), (13_000, 1_500, 11_500), 1);
        check(&Trial::Differs, (13_000, 1_500, 11_500), 1);
    }

    #[test]
    fn a_warm_call_is_the_programs_own_work_and_the_call_itself() {
        let report = of(&python(), &[round(Kind::Python, Some((3, 11)))]);
        assert_eq!((report.wall_us, report.program.arguments), (100_000, 1));
        let parts = report.warm.parts.unwrap();
        assert_eq!((parts.call_us, parts.own_us), (1_500, 11_500));
        assert_eq!(report.warm.saves_us, Some(100_000 - 13_000));
        assert_eq!((report.warm.hosted, report.notes.len()), (true, 0));
    }

    #[test]
    fn what_each_call_imports_again_is_counted_and_predicted() {
        let mut round = round(Kind::Python, Some((3, 11)));
        let import = |depth, begin_ms: u64, end_ms: u64, name: &str| imports::Import {
            depth,
            begin_ns: begin_ms * 1_000_000,
            end_ns: end_ms * 1_000_000,
            name: name.to_owned(),
        };
        let stamps = round.stamps.as_mut().unwrap();
        stamps.imports = vec![
            import(1, 81, 84, "kept"),
            import(0, 80, 85, "done.by"),
            import(0, 40, 41, "site"),
        ];
        let names = ["atexit", "time", "site", "done.by", "kept"];
        let rounds = [round];
        assert_eq!(imported(&rounds), names);
        let always = [("done.by", "state"), ("other", "state"), ("third", "moment")];
        let always = always.map(|(name, why)| (name.to_owned(), why.to_owned())).into();
        let report = with(
            &python(),
            &rounds,
            Some(Repeated { always, in_terminal: 4, ..Repeated::default() }),
        );
        let (parts, repeated) = (report.warm.parts.unwrap(), report.warm.repeated.unwrap());
        assert_eq!(parts.imports_us, 2_300, "two of five milliseconds, in a copy");
        let whole = parts.call_us + parts.own_us + parts.imports_us;
        assert_eq!(report.warm.predicted_us, Some(whole));
        assert_eq!((repeated.modules, repeated.in_terminal), (3, 4));
        let why: Vec<_> = repeated.why.iter().map(|(why, count)| (why.as_str(), *count)).collect();
        assert_eq!(why, [("moment", 1), ("state", 2)]);
    }

    #[test]
    fn a_call_that_cannot_be_made_is_estimated_within_bounds() {
        let of = [0, 400_000, u64::MAX].map(estimated_call_ns);
        assert_eq!(of, [400_000, 1_400_000, 6_000_000]);
    }

    #[test]
    fn noise_is_not_taken_for_work() {
        let mut noisy = round(Kind::Python, Some((3, 11)));
        noisy.watched.last_byte_ns = Some(98_000_000);
        let rounds = [round(Kind::Python, Some((3, 11))), noisy];
        assert_eq!(of(&python(), &rounds).warm.parts.unwrap().own_us, 11_500);
    }

    #[test]
    fn what_is_not_kept_warm_says_why_and_nothing_is_predicted() {
        let check = |program: &Program, round: Round, want: &str| {
            let report = of(program, &[round]);
            let why = report.warm.why_not.clone().unwrap_or_default();
            assert!(why.contains(want), "{why}");
            assert_eq!((report.warm.predicted_us, report.warm.saves_us), (None, None));
        };
        check(&python(), round(Kind::Python, Some((3, 8))), "this is 3.8");
        check(&python(), round(Kind::Python, None), "nothing is predicted");
        check(&exec(None), round(Kind::Ruby, None), "ruby");
        check(&exec(None), round(Kind::Native, None), "machine code");
        check(&exec(Some(ColdNote::InlineCode)), round(Kind::Native, None), "into a file");
        check(&exec(Some(ColdNote::SetId)), round(Kind::Native, None), "user or group");
    }

    #[test]
    fn runs_that_differ_and_files_that_follow_each_other_are_noted() {
        let mut odd = round(Kind::Shell, None);
        odd.watched.status = 256;
        odd.watched.executions = 2;
        let mut slow = round(Kind::Shell, None);
        (slow.plain.ended_ns, slow.watched.ended_ns) = (300_000_000, 90_000_000);
        let report = of(&exec(None), &[odd, slow]);
        assert_eq!(report.notes.len(), 3, "{:?}", report.notes);
    }
}
