//! Asks over hosts in a network that loses, delays, doubles and reorders messages, and connections
//! that come and go: what the two machines promise holds at every step.
//!
//! A message that is doubled comes twice to the same host: the server gives one to one member of a
//! queue group only. Some programs are claimed, at some hosts and from some moment on; hosts stand
//! still, and go on. What was claimed is checked against the moment at which its asker gave up.
#![expect(clippy::unwrap_used, reason = "a failure here is a failure of the test")]

use std::collections::BTreeMap;

use hob_core::hosts::asker::{self, Asker, Effect, Ended};
use hob_core::hosts::host::{Host, Verdict};
use hob_core::hosts::reply::{Reply, was_not_given};
use hob_core::hosts::{ASKS_MAX, Attempt, CLAIM_US, Claim, QUESTIONS_MAX, Question, Way};
use hob_core::ids::{CallId, Time};
use hob_wire::message::Reason;

const STEPS: u64 = 1_000_000;
const SEEDS: u64 = 20;
const BYTES_MAX: usize = 1 << 20;

struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).unwrap()
    }

    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// What is on its way.
enum Flying {
    ToHost { host: usize, question: Question },
    Go { host: usize, ticket: u64, reply_to: String, within: Option<String> },
    ToAsker { attempt: Attempt, reply: Reply },
    Taken { attempt: Attempt, to: String },
}

#[derive(Default)]
struct Node {
    host: Host,
    subscribed: bool,
    /// Whether its programs are claimed.
    claims: bool,
    /// It stands still: nothing arrives.
    stopped: bool,
    /// It takes nothing new, and says so.
    leaves: bool,
    /// It hears no word to perform what it has taken.
    gone: bool,
    /// Questions that are performed now, with their ends.
    running: Vec<(Question, Time)>,
}

struct World {
    rng: Rng,
    now: Time,
    next: u64,
    asker: Asker,
    up: bool,
    nodes: [Node; 3],
    flying: Vec<Flying>,
    /// How often each was performed.
    performed: BTreeMap<u64, u32>,
    /// Those of them after a word, and when their askers gave up.
    after_word: u64,
    gave_up: BTreeMap<u64, Time>,
    until: BTreeMap<u64, Time>,
    /// How each ended.
    ended: BTreeMap<u64, Ended>,
}

impl World {
    fn new(seed: u64) -> World {
        World {
            rng: Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            now: Time(1),
            next: 1,
            asker: Asker::default(),
            up: false,
            nodes: Default::default(),
            flying: Vec::new(),
            performed: BTreeMap::new(),
            after_word: 0,
            gave_up: BTreeMap::new(),
            until: BTreeMap::new(),
            ended: BTreeMap::new(),
        }
    }

    fn tell(&mut self, event: asker::Event) {
        let mut out = Vec::new();
        self.asker.handle(self.now, event, &mut out);
        for effect in out {
            match effect {
                Effect::Publish { attempt, way, within_us } => {
                    self.publish(attempt, way, within_us);
                }
                Effect::Go { attempt, to, within_us } => self.go(attempt, &to, within_us),
                Effect::End { call, ended } => {
                    self.gave_up.insert(call.0, self.now);
                    let before = self.ended.insert(call.0, ended);
                    assert!(before.is_none(), "{call:?} ended twice: {before:?}");
                }
            }
        }
        assert!(self.asker.len() <= ASKS_MAX);
    }

    /// The server takes it, and gives it to one of those that offer it, or to all.
    fn publish(&mut self, attempt: Attempt, way: Way, within_us: u64) {
        assert!(self.up && within_us > 0);
        if self.rng.once_in(50) {
            return self.tell(asker::Event::NotSent { attempt, why: String::new() });
        }
        if self.rng.once_in(40) {
            // Lost on its way.
            return;
        }
        let hears = |node: &Node| node.subscribed && (way == Way::Plain || node.claims);
        let offering: Vec<usize> = (0..3).filter(|at| hears(&self.nodes[*at])).collect();
        if offering.is_empty() {
            return self.flying.push(Flying::ToAsker { attempt, reply: Reply::NoResponders });
        }
        let within = match self.rng.below(30) {
            0 => None,
            1 => Some("-7".to_owned()),
            2 => Some("a while".to_owned()),
            3 => Some(u128::MAX.to_string()),
            _ => Some(within_us.to_string()),
        };
        let hops = [None, Some("1"), Some("9")][self.rng.index(3)].map(str::to_owned);
        let question = Question {
            reply_to: format!("r.{}.{}", attempt.call.0, attempt.number),
            program: "p".to_owned(),
            within,
            hops,
            traceparent: None,
            from: String::new(),
            claim: if way == Way::Plain { Claim::Known } else { Claim::Needed },
            key: Vec::new(),
            content_type: Vec::new(),
            payload: Vec::new(),
        };
        let to = match way {
            Way::ClaimOfAll => offering,
            Way::Plain | Way::Claim => vec![offering[self.rng.index(offering.len())]],
        };
        for host in to {
            if self.rng.once_in(10) {
                self.flying.push(Flying::ToHost { host, question: question.clone() });
            }
            self.flying.push(Flying::ToHost { host, question: question.clone() });
        }
    }

    fn go(&mut self, attempt: Attempt, to: &str, within_us: u64) {
        if self.rng.once_in(50) {
            return self.tell(asker::Event::NotSent { attempt, why: String::new() });
        }
        let (host, ticket) = to.split_once('.').unwrap();
        let (host, ticket) = (host.parse::<usize>().unwrap(), ticket.parse().unwrap());
        if self.nodes[host].gone {
            return self.flying.push(Flying::ToAsker { attempt, reply: Reply::NoResponders });
        }
        let reply_to = format!("r.{}.{}", attempt.call.0, attempt.number);
        self.until.insert(attempt.call.0, self.now.after_us(within_us));
        for _ in 0..=u64::from(self.rng.once_in(10)) {
            let (reply_to, within) = (reply_to.clone(), Some(within_us.to_string()));
            self.flying.push(Flying::Go { host, ticket, reply_to, within });
        }
    }

    fn arrive(&mut self, at: usize) {
        match self.flying.swap_remove(at) {
            Flying::ToAsker { .. } | Flying::Taken { .. } if !self.up => {}
            Flying::ToAsker { attempt, reply } => {
                if self.rng.once_in(10) {
                    self.flying.push(Flying::ToAsker { attempt, reply: reply.clone() });
                }
                self.tell(asker::Event::Replied { attempt, reply });
            }
            Flying::Taken { attempt, to } => {
                if self.rng.once_in(10) {
                    self.flying.push(Flying::Taken { attempt, to: to.clone() });
                }
                self.tell(asker::Event::Taken { attempt, to });
            }
            // What comes to a host that stands still comes when it goes on.
            flying @ (Flying::ToHost { host, .. } | Flying::Go { host, .. })
                if self.nodes[host].stopped =>
            {
                self.flying.push(flying);
            }
            Flying::ToHost { host, question } => {
                let (now, node) = (self.now, &mut self.nodes[host]);
                let verdict = node.host.came(now, question, node.claims);
                self.decided(host, verdict, false);
            }
            Flying::Go { host, ticket, reply_to, within } => {
                let word = (Some(reply_to), within.as_deref());
                let verdict = self.nodes[host].host.went(self.now, ticket, word);
                self.decided(host, verdict, true);
            }
        }
    }

    fn decided(&mut self, host: usize, verdict: Verdict, is_claimed: bool) {
        match verdict {
            Verdict::Ignore => {}
            Verdict::Refuse { to, reason, text } => {
                assert!(was_not_given(reason) || reason == Reason::TimedOut);
                self.reply(&to, reason, text);
            }
            Verdict::Take { to, .. } if self.nodes[host].leaves => {
                self.nodes[host].host.ended(&to);
                self.reply(&to, Reason::Stopping, String::new());
            }
            Verdict::Take { to, ticket } => {
                let to = attempt_of(&to);
                self.flying.push(Flying::Taken { attempt: to, to: format!("{host}.{ticket}") });
            }
            Verdict::Give(given) if self.nodes[host].leaves => {
                let to = given.question.reply_to;
                self.nodes[host].host.ended(&to);
                self.reply(&to, Reason::Stopping, String::new());
            }
            Verdict::Give(given) => {
                let call = attempt_of(&given.question.reply_to).call.0;
                assert!(given.within_us > 0 && self.nodes[host].host.len() <= QUESTIONS_MAX);
                *self.performed.entry(call).or_default() += 1;
                let deadline = self.now.after_us(given.within_us);
                if is_claimed {
                    self.after_word += 1;
                    let until = self.until[&call];
                    assert!(deadline <= until, "{call} may be performed when its time has passed");
                    let ended = self.ended.get(&call);
                    assert!(
                        !matches!(ended, Some(Ended::TimedOut | Ended::NotGiven(_))),
                        "{call} is performed after its asker gave up: {ended:?}"
                    );
                }
                self.nodes[host].running.push((given.question, deadline));
            }
        }
    }

    fn reply(&mut self, to: &str, reason: Reason, text: String) {
        let reply = Reply::Failure { by: String::new(), spent_us: 1, reason, text };
        self.flying.push(Flying::ToAsker { attempt: attempt_of(to), reply });
    }

    fn performs(&mut self, host: usize) {
        let node = &mut self.nodes[host];
        node.host.caught_up();
        if node.running.is_empty() {
            return;
        }
        let at = self.rng.index(node.running.len());
        let (question, deadline) = node.running.swap_remove(at);
        node.host.ended(&question.reply_to);
        if deadline <= self.now {
            return self.reply(&question.reply_to, Reason::TimedOut, String::new());
        }
        let (by, payload) = (format!("h{host}/1"), vec![7]);
        let reply = Reply::Answer { by, spent_us: 1, content_type: Vec::new(), payload };
        let attempt = attempt_of(&question.reply_to);
        self.flying.push(Flying::ToAsker { attempt, reply });
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..12 => {
                let call = CallId(self.next);
                self.next += 1;
                let deadline = match self.rng.below(3) {
                    0 => None,
                    _ => Some(self.now.after_us(self.rng.below(5_000))),
                };
                let bytes = if self.rng.once_in(50) { BYTES_MAX } else { 5 };
                let program = if self.rng.once_in(3) { "q" } else { "p" }.to_owned();
                self.tell(asker::Event::Ask { call, program, bytes, deadline, after: 0 });
            }
            12..65 if !self.flying.is_empty() => {
                let at = self.rng.index(self.flying.len());
                if self.rng.once_in(60) {
                    self.flying.swap_remove(at);
                } else {
                    self.arrive(at);
                }
            }
            65..85 => {
                let host = self.rng.index(3);
                self.performs(host);
            }
            85..87 => {
                let host = self.rng.index(3);
                let is_rare = self.rng.once_in(5);
                let node = &mut self.nodes[host];
                match self.rng.below(6) {
                    4 => node.leaves = is_rare,
                    5 => node.gone = is_rare,
                    0 => node.claims = !node.claims,
                    1 => {
                        node.stopped = !node.stopped;
                        if !node.stopped {
                            node.host.stood_still();
                        }
                    }
                    _ => node.subscribed = !node.subscribed,
                }
            }
            87 if self.rng.once_in(5) => {
                self.up = !self.up;
                self.tell(if self.up {
                    asker::Event::Up { bytes_max: BYTES_MAX }
                } else {
                    asker::Event::Down { why: "cut".to_owned() }
                });
            }
            88..90 => {
                let call = CallId(self.next.saturating_sub(1 + self.rng.below(20)));
                self.tell(asker::Event::TakenBack { call });
            }
            90 if self.rng.once_in(50) => self.now = self.now.after_us(400_000_000),
            91 if self.rng.once_in(10) => self.now = self.now.after_us(CLAIM_US),
            _ => self.now = self.now.after_us(self.rng.below(300)),
        }
        if self.asker.next_deadline().is_some_and(|at| at <= self.now) {
            self.tell(asker::Event::Tick);
        }
        let now = self.now;
        for node in self.nodes.iter_mut().filter(|node| !node.stopped) {
            node.host.tick(now);
            assert!(node.host.next_deadline().is_none_or(|at| at > now));
        }
        assert!(self.asker.next_deadline().is_none_or(|at| at > self.now));
    }

    fn check(&self) {
        for (call, count) in &self.performed {
            assert!(*count <= 1, "{call} was performed {count} times");
        }
        for (call, ended) in &self.ended {
            let count = self.performed.get(call).copied().unwrap_or(0);
            let not_given = match ended {
                Ended::NotGiven(_) | Ended::Replied(Reply::NoResponders) => true,
                Ended::Replied(Reply::Failure { reason, .. }) => was_not_given(*reason),
                Ended::Replied(Reply::Answer { .. }) => {
                    assert_eq!(count, 1, "{call} was answered and not performed");
                    false
                }
                Ended::TimedOut | Ended::Lost(_) | Ended::TakenBack => false,
            };
            assert!(!not_given || count == 0, "{call} ended as {ended:?} and was performed");
        }
    }
}

fn attempt_of(to: &str) -> Attempt {
    let (call, number) = to[2..].split_once('.').unwrap();
    Attempt { call: CallId(call.parse().unwrap()), number: number.parse().unwrap() }
}

#[test]
fn an_ask_ends_once_and_what_was_not_given_was_not_performed() {
    let (mut seen, mut after_word) = ([0_u64; 6], 0);
    for seed in 1..=SEEDS {
        let mut world = World::new(seed);
        for _ in 0..STEPS / SEEDS {
            world.step();
        }
        world.check();
        world.tell(asker::Event::Stop);
        assert!(world.asker.is_empty() && world.asker.next_deadline().is_none());
        assert_eq!(world.ended.len() as u64, world.next - 1, "answered + lost + not given = asked");
        after_word += world.after_word;
        for ended in world.ended.values() {
            seen[match ended {
                Ended::Replied(Reply::Answer { .. }) => 0,
                Ended::Replied(_) => 1,
                Ended::TimedOut => 2,
                Ended::Lost(_) => 3,
                Ended::NotGiven(_) => 4,
                Ended::TakenBack => 5,
            }] += 1;
        }
    }
    // A world in which one of them never happens proves nothing of it.
    assert!(seen.iter().all(|count| *count > 500), "{seen:?}");
    assert!(after_word > 2_000, "{after_word}");
}

fn ask(call: u64) -> asker::Event {
    let (call, program) = (CallId(call), "p".to_owned());
    asker::Event::Ask { call, program, bytes: 1, deadline: None, after: 0 }
}

fn attempt(call: u64, number: u32) -> Attempt {
    Attempt { call: CallId(call), number }
}

#[test]
fn an_ask_waits_for_the_first_connection_and_not_for_a_second() {
    let (mut asker, mut out) = (Asker::default(), Vec::new());
    asker.handle(Time(1), ask(1), &mut out);
    assert_eq!(out, []);
    asker.handle(Time(2), asker::Event::Up { bytes_max: BYTES_MAX }, &mut out);
    assert!(matches!(out[..], [Effect::Publish { way: Way::Claim, .. }]), "{out:?}");
    out.clear();
    let reply = Reply::NoResponders;
    asker.handle(Time(2), asker::Event::Replied { attempt: attempt(1, 1), reply }, &mut out);
    assert!(matches!(out[..], [Effect::Publish { way: Way::Plain, .. }]), "{out:?}");
    out.clear();
    asker.handle(Time(3), asker::Event::Down { why: "gone".to_owned() }, &mut out);
    let lost = Ended::Lost("gone".to_owned());
    assert_eq!(out, [Effect::End { call: CallId(1), ended: lost }]);
    out.clear();
    asker.handle(Time(4), ask(2), &mut out);
    let why = asker::NotGiven::NoConnection("gone".to_owned());
    assert_eq!(out, [Effect::End { call: CallId(2), ended: Ended::NotGiven(why) }]);
}

#[test]
fn what_comes_to_a_host_that_is_behind_is_taken_or_not_given() {
    let mut host = Host::default();
    let question = |number: u32, claim| Question {
        reply_to: format!("r.1.{number}"),
        program: "p".to_owned(),
        within: Some("100".to_owned()),
        hops: None,
        traceparent: None,
        from: String::new(),
        claim,
        key: Vec::new(),
        content_type: Vec::new(),
        payload: Vec::new(),
    };
    host.stood_still();
    let refused = host.came(Time(5), question(1, Claim::Unknown), true);
    assert!(matches!(refused, Verdict::Refuse { reason: Reason::Busy, .. }), "{refused:?}");
    assert!(was_not_given(Reason::Busy) && host.is_empty());
    let taken = host.came(Time(5), question(2, Claim::Known), true);
    assert!(matches!(taken, Verdict::Take { .. }), "{taken:?}");
    host.caught_up();
    // A double of what was refused is not performed; the same asked again is.
    assert_eq!(host.came(Time(6), question(1, Claim::Unknown), true), Verdict::Ignore);
    let given = host.came(Time(6), question(3, Claim::Unknown), true);
    assert!(matches!(given, Verdict::Give(..)), "{given:?}");
}

#[test]
fn a_claim_that_nobody_takes_goes_to_all_and_is_said_to_go_once() {
    let (mut asker, mut out) = (Asker::default(), Vec::new());
    asker.handle(Time(0), asker::Event::Up { bytes_max: BYTES_MAX }, &mut out);
    asker.handle(Time(0), ask(1), &mut out);
    out.clear();
    let late = Time(CLAIM_US * 1000);
    asker.handle(late, asker::Event::Tick, &mut out);
    assert!(matches!(out[..], [Effect::Publish { way: Way::ClaimOfAll, .. }]), "{out:?}");
    out.clear();
    let taken =
        |number, to: &str| asker::Event::Taken { attempt: attempt(1, number), to: to.to_owned() };
    // The one that had stood still comes too late.
    asker.handle(late, taken(1, "a"), &mut out);
    assert_eq!(out, []);
    asker.handle(late, taken(2, "b"), &mut out);
    asker.handle(late, taken(2, "a"), &mut out);
    assert!(matches!(&out[..], [Effect::Go { to, .. }] if to == "b"), "{out:?}");
    // What nobody takes at all is not given.
    out.clear();
    asker.handle(late, ask(2), &mut out);
    for turn in 2..10 {
        asker.handle(Time(turn * CLAIM_US * 1000), asker::Event::Tick, &mut out);
    }
    let ended = Ended::NotGiven(asker::NotGiven::NotTaken);
    assert_eq!(out.last(), Some(&Effect::End { call: CallId(2), ended }));
    assert_eq!(out.len(), 5, "{out:?}");
}

#[test]
fn a_claim_that_the_server_forbids_is_not_given_and_what_has_gone_on_is_not_touched() {
    let (mut asker, mut out) = (Asker::default(), Vec::new());
    asker.handle(Time(0), asker::Event::Up { bytes_max: BYTES_MAX }, &mut out);
    asker.handle(Time(0), ask(1), &mut out);
    let taken = asker::Event::Taken { attempt: attempt(1, 1), to: "a".to_owned() };
    asker.handle(Time(0), taken, &mut out);
    asker.handle(Time(0), ask(2), &mut out);
    out.clear();
    let forbidden = |program: &str| asker::Event::Forbidden {
        program: program.to_owned(),
        why: "no".to_owned(),
    };
    asker.handle(Time(1), forbidden("another"), &mut out);
    assert_eq!(out, []);
    let asker::Event::Ask { program, .. } = ask(2) else { panic!("no ask") };
    asker.handle(Time(1), forbidden(&program), &mut out);
    let ended = Ended::NotGiven(asker::NotGiven::Forbidden("no".to_owned()));
    assert_eq!(out, [Effect::End { call: CallId(2), ended }]);
    // Whoever takes it now gets no word; the one that has its word is waited for.
    out.clear();
    let late = asker::Event::Taken { attempt: attempt(2, 1), to: "b".to_owned() };
    asker.handle(Time(2), late, &mut out);
    assert_eq!(out, []);
    assert!(asker.has(CallId(1)) && !asker.has(CallId(2)));
}

#[test]
fn what_is_said_late_to_an_attempt_elsewhere_is_no_word_to_a_new_one() {
    let (mut asker, mut out) = (Asker::default(), Vec::new());
    asker.handle(Time(0), asker::Event::Up { bytes_max: BYTES_MAX }, &mut out);
    let asker::Event::Ask { call, program, bytes, deadline, .. } = ask(1) else { panic!("no ask") };
    let again = asker::Event::Ask { call, program, bytes, deadline, after: 2 };
    asker.handle(Time(0), again, &mut out);
    assert!(
        matches!(&out[..], [Effect::Publish { attempt, .. }] if attempt.number == 3),
        "{out:?}"
    );
    out.clear();
    for number in 1..3 {
        let taken = asker::Event::Taken { attempt: attempt(1, number), to: "late".to_owned() };
        asker.handle(Time(1), taken, &mut out);
    }
    assert_eq!(out, []);
}
