//! A client's dialogue with its session: what passes, what hob answers, what an interrupt ends.

use hob_core::ids::Time;
use hob_core::sessions::dialogue::{Act, Cloned, Dialogue, INTERRUPT_US};
use hob_wire::bencode::{Item, Message, message};

struct Story {
    dialogue: Dialogue,
    cloned: Cloned,
    now: Time,
}

fn pairs<'a>(pairs: &'a [(&'a str, &'a str)]) -> Vec<u8> {
    let items: Vec<_> =
        pairs.iter().map(|(key, text)| (*key, Item::Text(text.as_bytes()))).collect();
    message(&items)
}

fn done(id: &str, status: &[&[u8]]) -> Vec<u8> {
    message(&[("id", Item::Text(id.as_bytes())), ("status", Item::Texts(status))])
}

impl Story {
    fn new(shared: bool, token: &str) -> Story {
        let dialogue = Dialogue::new(shared, token.as_bytes());
        Story { dialogue, cloned: Cloned::default(), now: Time(1) }
    }

    fn client(&mut self, text: &[(&str, &str)]) -> Vec<Act> {
        let mut acts = Vec::new();
        self.dialogue.client(self.now, pairs(text), &mut self.cloned, &mut acts).unwrap();
        acts
    }

    fn session(&mut self, bytes: Vec<u8>) -> Vec<Act> {
        let mut acts = Vec::new();
        self.dialogue.session(bytes, &mut self.cloned, &mut acts);
        acts
    }

    fn clones(&mut self, id: &str) {
        self.client(&[("op", "clone"), ("id", "c")]);
        self.session(message(&[
            ("id", Item::Text(b"c")),
            ("new-session", Item::Text(id.as_bytes())),
            ("status", Item::Texts(&[b"done"])),
        ]));
    }
}

/// The one message that a client is sent.
fn told(acts: &[Act]) -> Vec<u8> {
    let mut told = acts.iter().filter(|act| matches!(act, Act::ToClient(_)));
    let (Some(Act::ToClient(bytes)), None) = (told.next(), told.next()) else {
        panic!("one message is told: {acts:?}");
    };
    bytes.clone()
}

#[test]
fn what_hob_does_not_own_passes_as_the_bytes_that_came() {
    let mut story = Story::new(false, "");
    // Keys that are not in order, and one that hob has never heard of.
    let odd = b"d2:op4:info2:id1:75:zebrali1ei2eee".to_vec();
    let mut acts = Vec::new();
    story.dialogue.client(story.now, odd.clone(), &mut story.cloned, &mut acts).unwrap();
    assert_eq!(acts, [Act::ToSession(odd)]);
    let answer = b"d2:id1:76:status l".to_vec();
    assert_eq!(story.session(answer.clone()), [Act::ToClient(answer)]);
    let answer = done("7", &[b"done"]);
    assert_eq!(story.session(answer.clone()), [Act::ToClient(answer)]);
}

#[test]
fn a_close_is_answered_at_once_and_its_own_answer_is_dropped() {
    let mut story = Story::new(false, "");
    story.clones("s1");
    let acts = story.client(&[("op", "close"), ("id", "9"), ("session", "s1")]);
    let read = told(&acts);
    let read = Message::read(&read).unwrap();
    assert!(read.says("status", "done") && read.says("status", "session-closed"));
    assert_eq!(read.text("id"), Some(&b"9"[..]));
    let Some(Act::ToSession(passed)) = acts.last() else { panic!("{acts:?}") };
    let passed = Message::read(passed).unwrap();
    assert_eq!(passed.text("op"), Some(&b"close"[..]));
    let own = String::from_utf8(passed.text("id").unwrap().to_vec()).unwrap();
    assert_eq!(story.session(done(&own, &[b"done"])), []);
    let acts = story.client(&[("op", "ls-sessions"), ("id", "10")]);
    assert_eq!(Message::read(&told(&acts)).unwrap().raw("sessions"), Some(&b"le"[..]));
}

#[test]
fn those_who_ask_for_a_moment_share_one_dialogue() {
    let mut story = Story::new(true, "");
    story.clones("s1");
    let acts = story.client(&[("op", "clone"), ("id", "2")]);
    assert_eq!(Message::read(&told(&acts)).unwrap().text("new-session"), Some(&b"s1"[..]));
    assert_eq!(acts.len(), 1, "the session is not asked: {acts:?}");
}

#[test]
fn an_eval_is_begun_once_and_ends_once_with_what_became_of_it() {
    let mut story = Story::new(false, "");
    let acts = story.client(&[("op", "eval"), ("id", "1"), ("code", "(/ 1 0)")]);
    assert_eq!(acts[0], Act::Began);
    story.session(done("1", &[b"eval-error"]));
    let acts = story.session(done("1", &[b"done"]));
    let Act::Ended(ended) = &acts[0] else { panic!("{acts:?}") };
    assert!(!ended.ok && !ended.lost && !ended.interrupted);
    let mut acts = Vec::new();
    story.dialogue.over(&mut acts);
    assert_eq!(acts, []);
}

#[test]
fn an_interrupt_that_does_not_help_is_told_in_time_and_what_comes_later_is_not() {
    let mut story = Story::new(false, "");
    story.client(&[("op", "eval"), ("id", "1"), ("session", "s"), ("code", "(while true)")]);
    story.client(&[("op", "interrupt"), ("id", "2"), ("session", "s"), ("interrupt-id", "1")]);
    story.session(done("2", &[b"done"]));
    assert_eq!(story.dialogue.next_due(), Some(story.now.after_us(INTERRUPT_US)));
    let mut acts = Vec::new();
    story.dialogue.tick(story.now.after_us(INTERRUPT_US), &mut acts);
    let said = String::from_utf8_lossy(&told(&acts)).into_owned();
    assert!(said.contains("interrupted") && said.contains("hob session kill"), "{said}");
    assert!(acts.iter().any(|act| matches!(act, Act::Ended(done) if done.interrupted)));
    assert_eq!(story.dialogue.next_due(), None);
    assert_eq!(story.session(done("1", &[b"done"])), []);
}

#[test]
fn an_interrupt_that_helps_leaves_no_deadline_and_one_of_nothing_has_none() {
    let mut story = Story::new(false, "");
    story.client(&[("op", "interrupt"), ("id", "1"), ("session", "s")]);
    assert_eq!(story.dialogue.next_due(), None);
    story.client(&[("op", "eval"), ("id", "2"), ("session", "s")]);
    story.client(&[("op", "interrupt"), ("id", "3"), ("session", "s")]);
    assert!(story.dialogue.next_due().is_some());
    story.session(done("2", &[b"interrupted", b"done"]));
    assert_eq!(story.dialogue.next_due(), None);
    // Another client's eval is not this one's to give up.
    story.client(&[("op", "interrupt"), ("id", "4"), ("session", "s"), ("interrupt-id", "99")]);
    assert_eq!(story.dialogue.next_due(), None);
}

#[test]
fn the_first_message_has_the_token_and_later_ones_need_none() {
    for (given, good) in [("secret", true), ("Secret", false), ("secre", false), ("", false)] {
        let mut story = Story::new(false, "secret");
        let acts = story.client(&[("op", "describe"), ("id", "1"), ("token", given)]);
        assert_eq!(matches!(acts[0], Act::ToSession(_)), good, "{given}");
        assert_eq!(matches!(acts[0], Act::Refuse(_)), !good, "{given}");
        if good {
            let acts = story.client(&[("op", "describe"), ("id", "2")]);
            assert!(matches!(acts[0], Act::ToSession(_)));
        }
    }
}

#[test]
fn describe_names_hob_beside_what_the_session_says() {
    let mut story = Story::new(false, "");
    story.client(&[("op", "describe"), ("id", "1")]);
    let versions = pairs(&[("nrepl", "1.3.1")]);
    let answer = message(&[
        ("id", Item::Text(b"1")),
        ("ops", Item::Raw(b"d4:evaldee")),
        ("versions", Item::Raw(&versions)),
        ("status", Item::Texts(&[b"done"])),
    ]);
    let merged = told(&story.session(answer));
    let read = Message::read(&merged).unwrap();
    let versions = Message::read(read.raw("versions").unwrap()).unwrap();
    assert_eq!(versions.text("nrepl"), Some(&b"1.3.1"[..]));
    assert!(versions.raw("hob").is_some());
    assert_eq!(read.raw("ops"), Some(&b"d4:evaldee"[..]));
}
