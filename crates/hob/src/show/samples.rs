//! What the tests of rendering show, and the comparison with the golden files.
//!
//! `INSTA_UPDATE=always cargo test -p hob show` writes `golden/` anew: look at the difference. A test
//! that fails leaves what it saw beside the file, as `.snap.new`; `cargo insta review` shows both.

use hob_core::receipt::{
    GainPart, OutcomePart, PhasePart, ProgramPart, Receipt, SCHEMA, UsagePart, WorkerPart,
};
use hob_core::status::{
    CallsPart, ColdPart, MessagesPart, PoolPart, PushPart, RecorderPart, Status,
};
use jiff::tz::TimeZone;

use super::clock::Clock;
use super::entries::{Entry, FallbackLine, FallbackProgram};
use super::style::{Colour, Figures, Look};
use super::text::{Charset, width};

/// The looks that everything is shown in.
pub(crate) const LOOKS: [(&str, Look); 4] = [
    (
        "plain",
        Look {
            colour: Colour::Off,
            charset: Charset::Unicode,
            figures: Figures::Drawn,
            columns: Some(80),
        },
    ),
    (
        "colour",
        Look {
            colour: Colour::On,
            charset: Charset::Unicode,
            figures: Figures::Drawn,
            columns: Some(80),
        },
    ),
    (
        "ascii",
        Look {
            colour: Colour::Off,
            charset: Charset::Ascii,
            figures: Figures::Drawn,
            columns: Some(80),
        },
    ),
    (
        "narrow",
        Look {
            colour: Colour::Off,
            charset: Charset::Unicode,
            figures: Figures::Drawn,
            columns: Some(50),
        },
    ),
];

/// Compares with `golden/NAME.snap`. Escapes are written as `^[`, so that the files are text.
pub(crate) fn golden(name: &str, text: &str) {
    let mut place = insta::Settings::clone_current();
    place.set_snapshot_path("golden");
    place.set_prepend_module_to_snapshot(false);
    place.set_omit_expression(true);
    place.bind(|| insta::assert_snapshot!(name, text.replace('\u{1b}', "^[")));
}

/// What is shown in every look: as `golden/NAME-LOOK.snap` has it, and within the look's width.
pub(super) fn in_every_look(name: &str, show: impl Fn(&Look) -> String) {
    for (look_name, look) in LOOKS {
        let text = show(&look);
        if look.colour == Colour::Off {
            for line in text.lines() {
                assert!(look.columns.is_none_or(|columns| width(line) <= columns), "{line}");
            }
        }
        golden(&format!("{name}-{look_name}"), &text);
    }
}

/// A moment on the day of the samples.
pub(crate) fn clock() -> Clock {
    Clock { now: "2026-11-21T22:30:00Z".parse().unwrap(), zone: TimeZone::UTC }
}

fn phases(lengths: &[(&str, u64)]) -> Vec<PhasePart> {
    let mut start_us = 0;
    let mut phases = Vec::new();
    for (name, us) in lengths {
        phases.push(PhasePart { name: (*name).to_owned(), start_us, us: *us });
        start_us += us;
    }
    phases
}

fn with_phases(mut receipt: Receipt, lengths: &[(&str, u64)]) -> Receipt {
    receipt.phases = phases(lengths);
    receipt.total_us = lengths.iter().map(|(_, us)| us).sum();
    receipt
}

/// A warm call as most are.
pub(crate) fn warm() -> Receipt {
    let receipt = Receipt {
        schema: SCHEMA.to_owned(),
        call: 7,
        at: "2026-11-21T21:38:04.120337Z".to_owned(),
        program: ProgramPart {
            id: Some("3f9d1c0a5b7e2d48".to_owned()),
            name: "black".to_owned(),
            target: "/srv/venv/bin/black".to_owned(),
            runtime: "python".to_owned(),
            interpreter: Some("/usr/bin/python3.11".to_owned()),
            arguments: 2,
        },
        caller_pid: 4711,
        directory: Some("/srv/app".to_owned()),
        purpose: None,
        warm: true,
        reason: "copy-ready".to_owned(),
        isolation: "fork".to_owned(),
        outcome: OutcomePart {
            kind: "exited".to_owned(),
            code: Some(0),
            signal: None,
            phase: None,
        },
        phases: Vec::new(),
        total_us: 0,
        usage: Some(UsagePart { user_us: 312, system_us: 188, peak_kib: 9600 }),
        worker: Some(WorkerPart { pid: 4712, generation: 3 }),
        cold_us: Some(45_310),
        gain: Some(GainPart { saved_us: 42_030, most_us: 45_100, lost_us: 0, cold_runs: 3 }),
        demoted: None,
        imported: None,
        message: None,
        hooks: None,
        trace: None,
    };
    with_phases(
        receipt,
        &[
            ("connect", 62),
            ("send", 41),
            ("plan", 118),
            ("queue", 3),
            ("give", 37),
            ("enter", 212),
            ("main", 641),
            ("settle", 88),
            ("leave", 172),
        ],
    )
}

/// The first call of a program.
pub(super) fn cold() -> Receipt {
    let mut receipt = with_phases(
        warm(),
        &[
            ("connect", 71),
            ("send", 48),
            ("plan", 4_120),
            ("enter", 38_400),
            ("main", 412_000),
            ("settle", 230),
            ("leave", 190),
        ],
    );
    receipt.call = 1;
    receipt.at = "2026-11-20T09:05:59.000001Z".to_owned();
    receipt.warm = false;
    receipt.reason = "learning".to_owned();
    receipt.isolation = "spawn".to_owned();
    receipt.worker = None;
    receipt.cold_us = None;
    receipt.gain = None;
    receipt
}

/// Phases of microseconds, and a name that is long, wide, not UTF-8 and hostile.
pub(super) fn tiny() -> Receipt {
    let mut receipt = with_phases(
        warm(),
        &[("connect", 20), ("send", 1), ("plan", 0), ("queue", 0), ("give", 2), ("main", 20)],
    );
    receipt.call = 18_446_744_073_709_551_615;
    receipt.program.name = format!("./漢字\u{1b}[2J\u{fffd}\n{}.py", "a-very-long-name-".repeat(8));
    receipt.program.target = format!("/srv/{}漢字.py", "deep/".repeat(40));
    receipt.program.arguments = 1;
    receipt.reason = "forked-on-demand".to_owned();
    receipt.outcome.code = Some(125);
    receipt.usage = Some(UsagePart { user_us: 0, system_us: 7, peak_kib: 512 });
    // hob was slower than without it, and says so.
    receipt.cold_us = Some(30);
    receipt.gain = Some(GainPart { saved_us: 0, most_us: 0, lost_us: 13, cold_runs: 1 });
    receipt
}

/// Ten minutes, ended by a signal.
pub(super) fn huge() -> Receipt {
    let mut receipt = with_phases(
        warm(),
        &[
            ("connect", 62),
            ("send", 41),
            ("plan", 118),
            ("queue", 95_000_000),
            ("give", 37),
            ("enter", 212),
            ("main", 510_004_000),
            ("settle", 88),
        ],
    );
    receipt.program.name = "train.py".to_owned();
    receipt.reason = "queued".to_owned();
    receipt.outcome.code = None;
    receipt.outcome.signal = Some(15);
    receipt.usage =
        Some(UsagePart { user_us: 3_900_000_000, system_us: 61_000_000, peak_kib: 14_000_000 });
    receipt.cold_us = Some(606_000_000);
    receipt.gain = None;
    receipt
}

/// A call that was not run.
pub(super) fn refused() -> Receipt {
    let mut receipt = with_phases(warm(), &[]);
    receipt.program.name = "no-such-tool".to_owned();
    receipt.program.target = String::new();
    receipt.program.runtime = "exec".to_owned();
    receipt.warm = false;
    receipt.reason = "not-found".to_owned();
    receipt.isolation = "none".to_owned();
    receipt.outcome =
        OutcomePart { kind: "refused".to_owned(), code: None, signal: None, phase: None };
    receipt.usage = None;
    receipt.worker = None;
    receipt.cold_us = None;
    receipt.gain = None;
    receipt.total_us = 402;
    receipt
}

/// A call that no daemon took.
pub(super) fn fallback() -> Entry {
    Entry::Fallback(FallbackLine {
        schema: crate::fallback::SCHEMA.to_owned(),
        at: "2026-11-21T20:00:00.000000Z".to_owned(),
        program: FallbackProgram { name: "yamllint".to_owned() },
        warm: false,
        reason: "no-daemon".to_owned(),
        descriptors: None,
        caller_pid: 4711,
    })
}

/// One of each.
pub(super) fn all() -> Vec<Entry> {
    let receipt = |receipt| Entry::Receipt(Box::new(receipt));
    vec![
        receipt(cold()),
        fallback(),
        receipt(warm()),
        receipt(tiny()),
        receipt(huge()),
        receipt(refused()),
    ]
}

/// A daemon that has just started.
pub(super) fn fresh_status() -> Status {
    Status {
        schema: hob_core::status::SCHEMA.to_owned(),
        pid: 4700,
        build: "3f9ac01b77e24c10a1b2c3d4e5f60718".to_owned(),
        version: "0.1.0".to_owned(),
        uptime_s: 3,
        socket: "/run/user/1000/hob/hob.sock".to_owned(),
        calls: CallsPart::default(),
        cold: Vec::new(),
        memory_kib: 0,
        budget_kib: 512 * 1024,
        pools: Vec::new(),
        messages: MessagesPart::default(),
        hosts: None,
        recorder: RecorderPart {
            dir: Some("/home/ada/.local/state/hob".to_owned()),
            written: 0,
            dropped: 0,
            off_reason: None,
        },
        push: None,
        log: None,
    }
}

/// A daemon that has seen things.
pub(super) fn busy_status() -> Status {
    let pool = |program: &str, isolation: &str, state: &str| PoolPart {
        program: program.to_owned(),
        target: format!("/srv/venv/bin/{program}"),
        interpreter: Some("/usr/bin/python3.11".to_owned()),
        runtime: "python".to_owned(),
        isolation: isolation.to_owned(),
        state: state.to_owned(),
        ready: 4,
        busy: 1,
        queued: 0,
        ahead: 4,
        calls: 1203,
        workers: Vec::new(),
        recycled: 0,
        memory_kib: 24_880,
        idle_s: 3,
        old: false,
        why: None,
    };
    let mut status = fresh_status();
    status.uptime_s = 7_530;
    status.calls = CallsPart {
        running: 1,
        queued: 0,
        warm_total: 1240,
        cold_total: 4,
        refused_total: 2,
        lost_total: 1,
    };
    let cold = |reason: &str, total| ColdPart { reason: reason.to_owned(), total };
    status.cold = vec![cold("learning", 3), cold("stale", 1)];
    status.memory_kib = 114_700;
    status.pools = vec![
        pool("black", "fork", "warm"),
        pool("/srv/deep/er/工具/a-rather-long-name-of-a-script.py", "standby", "warm"),
        pool("grpc-tool", "standby", "cold"),
    ];
    status.pools[1].why =
        Some("threads: its zygote had 3 threads after the preload, so it is never forked".into());
    status.pools[2].idle_s = 8_000;
    status.pools[2].calls = 3;
    status.messages = MessagesPart {
        waiting: 12,
        held: 3,
        held_why: Some("untrusted: /srv/app/hob.toml: was edited since it was trusted".into()),
        dead: 2,
        ..MessagesPart::default()
    };
    status.recorder.written = 1_180;
    status.recorder.dropped = 64;
    status.recorder.off_reason = Some("write-failed: No space left on device (os error 28)".into());
    status.push = Some(PushPart {
        to: "https://otel.example.org".into(),
        waiting: 40,
        sent: 1_024,
        dropped: 116,
        rejected_spans: 3,
        why: Some("it answered 429".into()),
    });
    status
}
