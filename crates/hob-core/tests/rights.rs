//! Rights: what is believed, for how long, and what is asked.

use std::collections::BTreeMap;

use hob_core::rights::{
    Allowed, Found, KEEP_US_MAX, KEYS_MAX, Key, Rights, Terms, Told, Verb, Verdict,
};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000;

fn terms() -> Terms {
    Terms { keep_us: 5 * SECOND, keep_no_us: SECOND, waiting_max: 4 }
}

fn key(who: u8, what: &str) -> Key {
    Key { who: [who; 32], verb: Verb::Read, what: what.as_bytes().to_vec() }
}

#[test]
fn a_yes_is_kept_from_when_it_was_asked_for_and_a_hit_lengthens_nothing() {
    let mut rights = Rights::new(terms());
    let Found::Ask(question) = rights.arrive(10, &key(1, "acme")) else { panic!("it is asked") };
    assert_eq!(rights.answered(2 * SECOND, question, Verdict::Yes), Some(Told::Yes));
    for now in [2 * SECOND, 3 * SECOND, 5 * SECOND + 9] {
        assert_eq!(rights.arrive(now, &key(1, "acme")), Found::Yes, "{now}");
    }
    assert!(matches!(rights.arrive(5 * SECOND + 10, &key(1, "acme")), Found::Ask(_)));
    assert!(matches!(rights.arrive(5 * SECOND + 10, &key(2, "acme")), Found::Ask(_)));
}

#[test]
fn a_no_is_kept_shorter_and_a_failure_not_at_all() {
    let mut rights = Rights::new(terms());
    let Found::Ask(question) = rights.arrive(0, &key(1, "a")) else { panic!("it is asked") };
    rights.answered(1, question, Verdict::No);
    assert_eq!(rights.arrive(SECOND - 1, &key(1, "a")), Found::No);
    let Found::Ask(question) = rights.arrive(SECOND, &key(1, "a")) else { panic!("it is asked") };
    assert_eq!(rights.answered(SECOND, question, Verdict::Failed), Some(Told::Failed));
    let Found::Ask(question) = rights.arrive(SECOND, &key(1, "a")) else { panic!("it is asked") };
    let late = SECOND + KEEP_US_MAX + 1;
    assert_eq!(rights.answered(late, question, Verdict::Yes), Some(Told::Failed));
    assert!(matches!(rights.arrive(late, &key(1, "a")), Found::Ask(_)));
}

#[test]
fn one_question_is_asked_however_many_wait_and_it_ends_with_the_last() {
    let mut rights = Rights::new(terms());
    let Found::Ask(question) = rights.arrive(0, &key(1, "a")) else { panic!("it is asked") };
    for _ in 0..3 {
        assert_eq!(rights.arrive(0, &key(1, "a")), Found::Wait(question));
    }
    assert_eq!(rights.arrive(0, &key(1, "b")), Found::Full);
    for is_last in [false, false, false, true] {
        assert_eq!(rights.left(question), is_last);
    }
    assert_eq!(rights.answered(1, question, Verdict::Yes), None);
    assert!(matches!(rights.arrive(1, &key(1, "a")), Found::Ask(other) if other != question));
}

#[test]
fn what_somebody_may_do_at_all_answers_other_questions() {
    let mut rights = Rights::new(terms());
    let Found::Ask(question) = rights.arrive(0, &key(1, "a")) else { panic!("it is asked") };
    let allowed = vec![
        Allowed { verb: Some(Verb::Read), what: None },
        Allowed { verb: Some(Verb::Write), what: Some(b"a".to_vec()) },
    ];
    assert_eq!(rights.answered(0, question, Verdict::All(allowed)), Some(Told::Yes));
    let write = |what| Key { verb: Verb::Write, ..key(1, what) };
    assert_eq!(rights.arrive(1, &key(1, "b")), Found::Yes);
    assert_eq!(rights.arrive(1, &write("a")), Found::Yes);
    assert_eq!(rights.arrive(1, &write("b")), Found::No);
    // What it does not allow may be granted meanwhile.
    assert!(matches!(rights.arrive(SECOND, &write("b")), Found::Ask(_)));
    assert!(matches!(rights.arrive(SECOND, &key(2, "b")), Found::Ask(_)));
}

#[test]
fn what_is_forgotten_is_not_kept_by_an_answer_on_its_way() {
    let mut rights = Rights::new(terms());
    let Found::Ask(before) = rights.arrive(0, &key(1, "a")) else { panic!("it is asked") };
    rights.forget(Some(&[2; 32]));
    assert_eq!(rights.arrive(0, &key(1, "a")), Found::Wait(before));
    rights.forget(Some(&[1; 32]));
    let Found::Ask(after) = rights.arrive(1, &key(1, "a")) else { panic!("it is asked again") };
    assert_eq!(rights.answered(2, before, Verdict::Yes), Some(Told::Yes));
    assert_eq!(rights.arrive(2, &key(1, "a")), Found::Wait(after));
    rights.answered(3, after, Verdict::No);
    assert_eq!(rights.arrive(4, &key(1, "a")), Found::No);
}

#[test]
fn a_clock_that_goes_back_forgets_all() {
    let mut rights = Rights::new(terms());
    let Found::Ask(question) = rights.arrive(9 * SECOND, &key(1, "a")) else { panic!("asked") };
    rights.answered(9 * SECOND, question, Verdict::Yes);
    assert!(matches!(rights.arrive(SECOND, &key(1, "a")), Found::Ask(_)));
}

#[test]
fn the_table_is_bounded() {
    let mut rights = Rights::new(Terms { waiting_max: usize::MAX, ..terms() });
    for number in 0..KEYS_MAX + 100 {
        let Found::Ask(question) = rights.arrive(0, &key(1, &number.to_string())) else {
            panic!("it is asked")
        };
        rights.answered(0, question, Verdict::Yes);
    }
    assert_eq!(rights.len(), KEYS_MAX);
}

#[derive(Debug, Clone)]
enum Step {
    Arrives(u8, u8),
    Answered(u8, bool),
    Fails(u8),
    Leaves(u8),
    Forget(u8),
    Grants(u8, bool),
    Passes(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3u8, 0..3u8).prop_map(|(who, what)| Step::Arrives(who, what)),
        3 => (any::<u8>(), any::<bool>()).prop_map(|(which, all)| Step::Answered(which, all)),
        1 => any::<u8>().prop_map(Step::Fails),
        1 => any::<u8>().prop_map(Step::Leaves),
        1 => (0..3u8).prop_map(Step::Forget),
        2 => (0..3u8, any::<bool>()).prop_map(|(who, may)| Step::Grants(who, may)),
        3 => (0..3 * SECOND).prop_map(Step::Passes),
    ]
}

proptest! {
    /// In a world where rights change, whatever happens in whatever order: who is let in could be
    /// let in at some time in the last five seconds, and never by what was forgotten.
    #[test]
    fn no_yes_is_older_than_it_may_be(steps in proptest::collection::vec(step(), 1..200)) {
        let (mut rights, mut now) = (Rights::new(terms()), 0);
        let mut may = [false; 3];
        // When each could last be let in, and when that was last forgotten.
        let (mut could, mut forgotten) = ([None; 3], [None::<u64>; 3]);
        let mut open: BTreeMap<u64, (u8, u8, u64, bool, usize)> = BTreeMap::new();
        for step in steps {
            for who in 0..3 {
                if may[who] {
                    could[who] = Some(now);
                }
            }
            let nth = |open: &BTreeMap<u64, _>, n: u8| {
                open.keys().nth(usize::from(n) % open.len().max(1)).copied()
            };
            match step {
                Step::Passes(time) => now += time,
                Step::Grants(who, is) => may[usize::from(who)] = is,
                Step::Forget(who) => {
                    rights.forget(Some(&[who; 32]));
                    forgotten[usize::from(who)] = Some(now);
                    // From now on another question is asked.
                    for asked in open.values_mut().filter(|asked| asked.0 == who) {
                        asked.3 = false;
                    }
                }
                Step::Arrives(who, what) => {
                    let at = usize::from(who);
                    match rights.arrive(now, &key(who, &what.to_string())) {
                        Found::Yes => {
                            let last = could[at].unwrap();
                            prop_assert!(now - last <= 5 * SECOND, "{now} {last}");
                            prop_assert!(forgotten[at].is_none_or(|then| then <= last || may[at]));
                        }
                        Found::Ask(question) => {
                            let twice = open.values().any(|asked| (asked.0, asked.1, asked.3) == (who, what, true));
                            prop_assert!(!twice, "two questions of one key");
                            open.insert(question, (who, what, now, true, 1));
                        }
                        Found::Wait(question) => {
                            let asked = open.get_mut(&question).unwrap();
                            prop_assert_eq!((asked.0, asked.1, asked.3), (who, what, true));
                            asked.4 += 1;
                        }
                        Found::No => {}
                        Found::Full => {
                            prop_assert_eq!(open.values().map(|asked| asked.4).sum::<usize>(), 4);
                        }
                    }
                }
                Step::Answered(which, all) => if let Some(question) = nth(&open, which) {
                    let (who, _, sent, ..) = open.remove(&question).unwrap();
                    let is = may[usize::from(who)];
                    let verdict = match (all, is) {
                        (false, true) => Verdict::Yes,
                        (false, false) => Verdict::No,
                        (true, true) => Verdict::All(vec![Allowed { verb: None, what: None }]),
                        (true, false) => Verdict::All(Vec::new()),
                    };
                    let told = rights.answered(now, question, verdict);
                    let expected = match (now - sent > 5 * SECOND, is) {
                        (true, _) => Told::Failed,
                        (false, true) => Told::Yes,
                        (false, false) => Told::No,
                    };
                    prop_assert_eq!(told, Some(expected));
                },
                Step::Fails(which) => if let Some(question) = nth(&open, which) {
                    open.remove(&question);
                    prop_assert_eq!(rights.answered(now, question, Verdict::Failed), Some(Told::Failed));
                },
                Step::Leaves(which) => if let Some(question) = nth(&open, which) {
                    let asked = open.get_mut(&question).unwrap();
                    asked.4 -= 1;
                    let is_last = asked.4 == 0;
                    prop_assert_eq!(rights.left(question), is_last);
                    if is_last {
                        open.remove(&question);
                    }
                },
            }
        }
    }
}
