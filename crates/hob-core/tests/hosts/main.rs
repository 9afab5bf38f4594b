//! Asks over hosts in a network that loses, delays, doubles and reorders messages, and connections
//! that come and go: what the two machines promise holds at every step.
//!
//! A message that is doubled comes twice to the same host: the server gives one to one member of a
//! queue group only.
#![expect(clippy::unwrap_used, reason = "a failure here is a failure of the test")]

use std::collections::BTreeMap;

use hob_core::hosts::asker::{self, Asker, Effect, Ended};
use hob_core::hosts::host::{Host, Verdict};
use hob_core::hosts::reply::{Reply, was_not_given};
use hob_core::hosts::{ASKS_MAX, QUESTIONS_MAX, Question};
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
    ToAsker { call: CallId, reply: Reply },
}

#[derive(Default)]
struct Node {
    host: Host,
    subscribed: bool,
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
            ended: BTreeMap::new(),
        }
    }

    fn tell(&mut self, event: asker::Event) {
        let mut out = Vec::new();
        self.asker.handle(self.now, event, &mut out);
        for effect in out {
            match effect {
                Effect::Publish { call, within_us } => self.publish(call, within_us),
                Effect::End { call, ended } => {
                    let before = self.ended.insert(call.0, ended);
                    assert!(before.is_none(), "{call:?} ended twice: {before:?}");
                }
            }
        }
        assert!(self.asker.len() <= ASKS_MAX);
    }

    /// The server takes it, and gives it to one of those that offer it.
    fn publish(&mut self, call: CallId, within_us: u64) {
        assert!(self.up && within_us > 0);
        if self.rng.once_in(50) {
            return self.tell(asker::Event::NotSent { call, why: String::new() });
        }
        if self.rng.once_in(40) {
            // Lost on its way.
            return;
        }
        let offering: Vec<usize> = (0..3).filter(|at| self.nodes[*at].subscribed).collect();
        if offering.is_empty() {
            return self.flying.push(Flying::ToAsker { call, reply: Reply::NoResponders });
        }
        let host = offering[self.rng.index(offering.len())];
        let within = match self.rng.below(30) {
            0 => None,
            1 => Some("-7".to_owned()),
            2 => Some("a while".to_owned()),
            3 => Some(u128::MAX.to_string()),
            _ => Some(within_us.to_string()),
        };
        let hops = [None, Some("1"), Some("9")][self.rng.index(3)].map(str::to_owned);
        let question = Question {
            reply_to: format!("r.{}", call.0),
            program: "p".to_owned(),
            within,
            hops,
            from: String::new(),
            key: Vec::new(),
            content_type: Vec::new(),
            payload: Vec::new(),
        };
        if self.rng.once_in(10) {
            self.flying.push(Flying::ToHost { host, question: question.clone() });
        }
        self.flying.push(Flying::ToHost { host, question });
    }

    fn arrive(&mut self, at: usize) {
        match self.flying.swap_remove(at) {
            Flying::ToAsker { .. } if !self.up => {}
            Flying::ToAsker { call, reply } => {
                if self.rng.once_in(10) {
                    self.flying.push(Flying::ToAsker { call, reply: reply.clone() });
                }
                self.tell(asker::Event::Replied { call, reply });
            }
            Flying::ToHost { host, question } => {
                let node = &mut self.nodes[host];
                match node.host.came(self.now, &question) {
                    Verdict::Ignore => {}
                    Verdict::Refuse { reason, text } => {
                        assert!(was_not_given(reason) || reason == Reason::TimedOut);
                        self.reply(&question, reason, text);
                    }
                    Verdict::Give { deadline } => {
                        assert!(deadline > self.now && node.host.len() <= QUESTIONS_MAX);
                        let call: u64 = question.reply_to[2..].parse().unwrap();
                        *self.performed.entry(call).or_default() += 1;
                        node.running.push((question, deadline));
                    }
                }
            }
        }
    }

    fn reply(&mut self, question: &Question, reason: Reason, text: String) {
        let call = CallId(question.reply_to[2..].parse().unwrap());
        let reply = Reply::Failure { by: String::new(), spent_us: 1, reason, text };
        self.flying.push(Flying::ToAsker { call, reply });
    }

    fn performs(&mut self, host: usize) {
        let node = &mut self.nodes[host];
        if node.running.is_empty() {
            return;
        }
        let at = self.rng.index(node.running.len());
        let (question, deadline) = node.running.swap_remove(at);
        node.host.ended(&question.reply_to);
        let call = CallId(question.reply_to[2..].parse().unwrap());
        if deadline <= self.now {
            return self.reply(&question, Reason::TimedOut, String::new());
        }
        let (by, payload) = (format!("h{host}/1"), vec![7]);
        let reply = Reply::Answer { by, spent_us: 1, content_type: Vec::new(), payload };
        self.flying.push(Flying::ToAsker { call, reply });
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..25 => {
                let call = CallId(self.next);
                self.next += 1;
                let deadline = match self.rng.below(3) {
                    0 => None,
                    _ => Some(self.now.after_us(self.rng.below(5_000))),
                };
                let bytes = if self.rng.once_in(50) { BYTES_MAX } else { 5 };
                self.tell(asker::Event::Ask { call, bytes, deadline });
            }
            25..65 if !self.flying.is_empty() => {
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
                self.nodes[host].subscribed = !self.nodes[host].subscribed;
            }
            87 => {
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
            90 => self.now = self.now.after_us(400_000_000),
            _ => self.now = self.now.after_us(self.rng.below(300)),
        }
        if self.asker.next_deadline().is_some_and(|at| at <= self.now) {
            self.tell(asker::Event::Tick);
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

#[test]
fn an_ask_ends_once_and_what_was_not_given_was_not_performed() {
    let mut seen = [0_u64; 6];
    for seed in 1..=SEEDS {
        let mut world = World::new(seed);
        for _ in 0..STEPS / SEEDS {
            world.step();
        }
        world.check();
        world.tell(asker::Event::Stop);
        assert!(world.asker.is_empty() && world.asker.next_deadline().is_none());
        assert_eq!(world.ended.len() as u64, world.next - 1, "answered + lost + not given = asked");
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
}

#[test]
fn an_ask_waits_for_the_first_connection_and_not_for_a_second() {
    let (mut asker, mut out) = (Asker::default(), Vec::new());
    let ask = |call| asker::Event::Ask { call: CallId(call), bytes: 1, deadline: None };
    asker.handle(Time(1), ask(1), &mut out);
    assert_eq!(out, []);
    asker.handle(Time(2), asker::Event::Up { bytes_max: BYTES_MAX }, &mut out);
    assert!(matches!(out[..], [Effect::Publish { call: CallId(1), .. }]), "{out:?}");
    out.clear();
    asker.handle(Time(3), asker::Event::Down { why: "gone".to_owned() }, &mut out);
    let lost = Ended::Lost("gone".to_owned());
    assert_eq!(out, [Effect::End { call: CallId(1), ended: lost }]);
    out.clear();
    asker.handle(Time(4), ask(2), &mut out);
    let why = asker::NotGiven::NoConnection("gone".to_owned());
    assert_eq!(out, [Effect::End { call: CallId(2), ended: Ended::NotGiven(why) }]);
}
