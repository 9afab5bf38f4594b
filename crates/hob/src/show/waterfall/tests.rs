//! A receipt in every look, and the bars of phases.

use super::*;
use crate::show::samples::{self, LOOKS, golden};
use crate::show::style::Colour;

fn check(name: &str, receipt: &Receipt) {
    for (look_name, look) in LOOKS {
        let text = super::receipt(receipt, &samples::clock(), &look);
        if look.colour == Colour::Off {
            for line in text.lines() {
                assert!(width(line) <= look.figure_columns(), "too wide: {line}");
            }
        }
        golden(&format!("waterfall-{name}-{look_name}"), &text);
    }
}

#[test]
fn what_a_call_imported_itself_is_told_with_what_becomes_of_it() {
    for ((modules, beyond, ahead), said) in [
        ((1, 1, true), "imports a module in the call: from now on loaded ahead"),
        ((9, 4, true), "imports 9 modules in the call: from now on 4 of them are loaded ahead"),
        ((9, 4, false), "imports 9 modules in the call: 4 of them not seen before"),
        ((9, 0, false), "imports 9 modules in the call: left to each call; `hob why` says why"),
    ] {
        assert_eq!(imports(ImportedPart { modules, beyond, ahead }), said);
    }
}

#[test]
fn what_is_not_drawn_says_the_same_in_words() {
    for (_, look) in LOOKS.into_iter().filter(|(_, look)| look.colour == Colour::Off) {
        let told = Look { figures: Figures::Told, ..look };
        let drawn = super::receipt(&samples::warm(), &samples::clock(), &look);
        let told = super::receipt(&samples::warm(), &samples::clock(), &told);
        let is_drawn = |line: &&str| line.contains(['\u{2588}', '#', '\u{258f}', '|']);
        assert!(drawn.lines().any(|line| is_drawn(&line)), "{drawn}");
        assert_eq!(told.lines().find(is_drawn), None);
        // All but the axis is there, up to where the bars begin.
        let words = |line: &&str| !line.trim_start().starts_with("0 ");
        let both = told.lines().zip(drawn.lines().filter(words));
        assert_eq!(told.lines().count(), drawn.lines().filter(words).count());
        for (told, drawn) in both {
            assert!(drawn.starts_with(told), "{told:?} is not the begin of {drawn:?}");
        }
    }
}

#[test]
fn a_warm_call() {
    check("warm", &samples::warm());
}

#[test]
fn a_learning_call_says_why_it_was_cold() {
    check("cold", &samples::cold());
}

#[test]
fn a_call_of_microseconds_with_a_hostile_name() {
    check("tiny", &samples::tiny());
}

#[test]
fn a_call_of_minutes_that_was_killed() {
    check("huge", &samples::huge());
}

#[test]
fn a_refused_call_has_no_phases() {
    check("refused", &samples::refused());
}

#[test]
fn a_call_that_no_daemon_took() {
    for (look_name, look) in LOOKS {
        let text = entry(&samples::fallback(), &samples::clock(), &look);
        golden(&format!("waterfall-fallback-{look_name}"), &text);
    }
}

#[test]
fn bars_are_where_their_phases_are_and_never_vanish() {
    let check = |start_us, us, charset, expected: &str| {
        let phase = PhasePart { name: "main".to_owned(), start_us, us };
        assert_eq!(bar(&phase, 800, 10, charset), expected, "{start_us}+{us}");
    };
    check(0, 800, Charset::Unicode, "██████████");
    check(0, 40, Charset::Unicode, "▌");
    check(80, 90, Charset::Unicode, " █▏");
    check(120, 120, Charset::Unicode, " ▐█");
    check(310, 10, Charset::Unicode, "   ▕");
    check(799, 1, Charset::Unicode, "         ▕");
    check(800, 1, Charset::Unicode, "         ▕");
    check(400, 0, Charset::Unicode, "");
    check(0, 800, Charset::Ascii, "##########");
    check(80, 160, Charset::Ascii, " ##");
    check(799, 1, Charset::Ascii, "         |");
}

#[test]
fn a_run_of_hooks_says_for_whom_and_how_they_were_started() {
    let none = HooksPart::default();
    assert_eq!(hooks(&none), "0 targets; hooks: none");
    let one = HooksPart { targets: 1, forked: 2, spawned: 1, ..none };
    assert_eq!(hooks(&one), "1 target; hooks: 2 forked, 1 spawned");
    let many = HooksPart { targets: 500, failed: 3, prestarted: 4, warm: 1496, ..none };
    assert_eq!(hooks(&many), "500 targets, 3 failed; hooks: 4 prestarted, 1496 warm");
}

#[test]
fn outcomes_are_words() {
    let check = |kind: &str, code, signal, phase: Option<&str>, expected: &str| {
        let phase = phase.map(str::to_owned);
        let part = OutcomePart { kind: kind.to_owned(), code, signal, phase };
        assert_eq!(outcome(&part, Charset::Unicode), expected);
    };
    check("exited", Some(3), None, None, "exited 3");
    check("exited", None, Some(15), None, "killed by SIGTERM");
    check("exited", None, Some(40), None, "killed by signal 40");
    check("timed-out", None, None, Some("queue"), "timed out in queue");
    check("lost", None, None, None, "lost");
}
