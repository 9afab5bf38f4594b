//! The recipe of docs/guides/hosts.md, followed on four machines with real networks between them; and
//! the cable of one of its hosts, pulled while another asks and tells.

mod network;
mod order;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hob_tests::teller::Reply;
use hob_tests::{Outcome, wait};
use serde_json::Value;

use super::many::{Ended, all_true, teller};
use super::secure;
use crate::guides::{blocks, is_as_said};
use network::{Machine, Network};

const PAGE: &str = include_str!("../../../../docs/guides/hosts.md");
const HOSTS: [&str; 3] = ["desk", "web-1", "web-2"];
const WEBS: [&str; 2] = ["web-1", "web-2"];
/// What only looks: it is done until it shows what the page says.
const LOOKS: &str = "hob hosts";

fn shell(machine: &Machine, commands: &str) -> Outcome {
    machine.run(&["bash", "-c", &format!("exec 2>&1\nset -eu\n{commands}")]).go()
}

/// Where the server says what connections it has: the one line that the page does not have.
const MONITOR: &str = "127.0.0.1:8222";

/// Four machines on which all of the page was done.
fn followed() -> Network {
    let network = Network::new(&HOSTS);
    let permissions = format!("{}\nhttp: \"{MONITOR}\"\n", secure::block());
    network.machine("server").world.file("permissions.conf", permissions);
    for block in blocks(PAGE) {
        let (first, commands) = block.commands.split_once('\n').unwrap();
        let names = first.strip_prefix("# on ").unwrap_or_else(|| panic!("where? {first}"));
        for name in names.split(", ") {
            let machine = network.machine(name);
            let mut outcome = shell(machine, commands);
            let Some(said) = &block.prints else {
                outcome.succeeded();
                continue;
            };
            if commands.starts_with(LOOKS) {
                wait::look(wait::LONG, || {
                    outcome = shell(machine, commands);
                    is_as_said(&outcome.text(), said).then_some(())
                });
            }
            let printed = outcome.text();
            let line = block.line;
            assert!(
                is_as_said(&printed, said),
                "{line}, {name}: printed\n{printed}\nbut the page says\n{said}"
            );
        }
    }
    let told = || greeted(&network).iter().any(|line| line == "you all").then_some(());
    wait::until("what was told", told);
    network
}

/// What hosts have greeted, each as often as they did.
fn greeted(network: &Network) -> Vec<String> {
    let mut all = Vec::new();
    for name in WEBS {
        let path = network.machine(name).world.path("work").join("greeted");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        all.extend(text.lines().map(str::to_owned));
    }
    all
}

/// The programs that desk sees, of each host that shows itself.
fn seen(network: &Network) -> Vec<Value> {
    let outcome = network.machine("desk").run(&["hob", "hosts", "--json"]).go();
    outcome.succeeded();
    let value: Value = serde_json::from_slice(&outcome.out).unwrap();
    value["programs"].as_array().unwrap().clone()
}

fn is_seen(network: &Network, name: &str) -> bool {
    seen(network).iter().any(|program| program["host"] == name)
}

/// How many connections the server has.
fn connections(network: &Network) -> usize {
    let url = format!("http://{MONITOR}/connz");
    let outcome = network.machine("server").run(&["curl", "--silent", "--show-error", &url]).go();
    outcome.succeeded();
    let value: Value = serde_json::from_slice(&outcome.out).unwrap();
    value["connections"].as_array().unwrap().len()
}

#[test]
fn the_page_is_followed_and_its_keys_let_nothing_else_pass() {
    let network = followed();
    // The server has refused what the page shows, and nothing else.
    let log = network.machine("server").world.path("work").join("server.log");
    let log = std::fs::read_to_string(log).unwrap();
    for line in log.lines().filter(|line| line.contains("Violation")) {
        assert!(line.contains("hob.claim.other"), "{line}");
    }
    // An asker is no host, and the doctor says so.
    let desk = network.machine("desk");
    for file in ["hob.toml", "greeter.py"] {
        let text = std::fs::read(network.machine("web-1").world.path("work").join(file)).unwrap();
        desk.world.file(&format!("mine/{file}"), text);
    }
    shell(desk, "cd mine\nsed -i 's/r]/rs]/' hob.toml\nhob trust").succeeded();
    wait::until("a refusal", || {
        let said = shell(desk, "hob doctor | grep -A1 ' hosts '").text();
        let is_refused =
            said.contains("the server refuses something: tls://10.77.0.1: Permissions");
        (is_refused && said.contains("fix: ")).then_some(())
    });
    let answer = desk.run(&["hob", "ask", "greeter", "still"]).go();
    assert!(answer.text().starts_with("hello still, from web-"), "{answer:?}");
    // A server that another authority vouches for is none of ours.
    shell(
        desk,
        "cd ~/.config/hob; mv ca.pem right.pem; openssl req -x509 -newkey ed25519 -nodes \
                 -subj /CN=other -keyout other.key -out ca.pem; cd -; hob restart",
    )
    .succeeded();
    let refused = desk.run(&["hob", "ask", "greeter", "x"]).go();
    assert_eq!(refused.end, hob_tests::End::Code(125), "{refused:?}");
    assert!(refused.complaint().contains("certificate"), "{refused:?}");
    let fix = shell(desk, "hob doctor | grep -A1 ' hosts '").text();
    assert!(fix.contains("fix: name the file of its authority by `ca` in "), "{fix}");
}

/// So many asks are open at a time.
const WINDOW: usize = 8;
const WITHIN_US: u64 = 4_000_000;
/// One tell to so many asks.
const TELL_EVERY: u64 = 4;
/// Numbers of tells.
const TELLS: u64 = 1 << 32;
/// As many asks as each host answers before the cable is pulled, and after it is in again.
const BEFORE: u32 = 20;
/// As many in a row are answered by the other host when the server has missed the one.
const IN_A_ROW: u32 = 40;
/// The server misses its pings, and a broken connection waits before it sends again.
const BOUND: Duration = Duration::from_secs(120);

/// Asks and tells of one sender.
struct Asking<'a> {
    network: &'a Network,
    teller: hob_tests::teller::Teller,
    sent: u64,
    open: BTreeSet<u64>,
    ended: BTreeMap<u64, Ended>,
    told: BTreeSet<u64>,
    kept: BTreeSet<u64>,
}

impl Asking<'_> {
    fn new(network: &Network) -> Asking<'_> {
        let teller = teller(&network.machine("desk").world);
        let (open, ended) = (BTreeSet::new(), BTreeMap::new());
        let (told, kept) = (BTreeSet::new(), BTreeSet::new());
        Asking { network, teller, sent: 0, open, ended, told, kept }
    }

    fn send(&mut self) {
        while self.open.len() < WINDOW {
            self.sent += 1;
            let number = self.sent;
            self.teller
                .ask_within(number, "greeter", number.to_string().as_bytes(), WITHIN_US)
                .unwrap();
            self.open.insert(number);
            if number.is_multiple_of(TELL_EVERY) {
                let text = format!("told {number}");
                self.teller.tell(TELLS + number, "greeter", text.as_bytes()).unwrap();
                self.told.insert(number);
            }
        }
        self.teller.flush().unwrap();
    }

    /// The end of one ask: which, and the host that has answered it.
    fn end(&mut self) -> (u64, Option<String>) {
        loop {
            let mut by = None;
            let (number, how) = match self.teller.reply().unwrap().unwrap() {
                Reply::Accepted(number, _) => {
                    assert!(self.kept.insert(number - TELLS), "{number} is kept twice");
                    continue;
                }
                Reply::Answered(number, answer) => {
                    let answer = String::from_utf8(answer).unwrap();
                    let host = answer.trim_end().strip_prefix(&format!("hello {number}, from "));
                    by = Some(host.unwrap_or_else(|| panic!("{number}: {answer}")).to_owned());
                    (number, Ended::Answered)
                }
                Reply::Failed(number, "lost" | "timed-out", _) => (number, Ended::Lost),
                Reply::Failed(number, "no-host" | "busy" | "stopping", _) => {
                    (number, Ended::NotGiven)
                }
                other @ Reply::Failed(..) => panic!("{other:?}"),
            };
            assert!(self.open.remove(&number), "{number} has two ends, or was never asked");
            self.ended.insert(number, how);
            return (number, by);
        }
    }

    /// Asks until both hosts have answered so many.
    fn until_both(&mut self) {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        let both = wait::look(BOUND, || {
            self.send();
            if let (_, Some(host)) = self.end() {
                *counts.entry(host).or_default() += 1;
            }
            WEBS.iter().all(|name| counts.get(*name) >= Some(&BEFORE)).then_some(())
        });
        assert!(both.is_some(), "{counts:?} have answered");
    }

    /// Asks until nothing but one host answers; what was asked before this does not count.
    fn until_alone(&mut self, name: &str) {
        let (since, mut row) = (self.sent, 0);
        let alone = wait::look(BOUND, || {
            self.send();
            let (number, by) = self.end();
            let is_its = by.as_deref() == Some(name);
            row = if is_its { row + u32::from(number > since) } else { 0 };
            (row == IN_A_ROW).then_some(())
        });
        assert!(alone.is_some(), "{row} answers of {name} in a row");
    }

    /// Asks until the server has let a host go that it hears no more.
    fn until_missed(&mut self) {
        let missed = wait::look(BOUND, || {
            (0..IN_A_ROW).for_each(|_| {
                self.send();
                self.end();
            });
            (connections(self.network) < HOSTS.len()).then_some(())
        });
        assert!(missed.is_some(), "the server does not miss it");
    }

    /// Waits for what is open.
    fn finish(&mut self) {
        while !self.open.is_empty() {
            self.end();
        }
        while self.kept.len() < self.told.len() {
            match self.teller.reply().unwrap().unwrap() {
                Reply::Accepted(number, _) => self.kept.insert(number - TELLS),
                other @ (Reply::Answered(..) | Reply::Failed(..)) => panic!("{other:?}"),
            };
        }
    }

    /// Pulls the cable of web-1 while asks and tells go on, and puts it in again before the server has
    /// missed that host, or after. Returns the last ask before the cable was out.
    fn cut(&mut self, is_missed: bool) -> u64 {
        let cable = self.network.machine("web-1");
        self.until_both();
        self.send();
        let last = self.sent;
        cable.cable(false);
        if is_missed {
            self.until_missed();
        }
        self.until_alone("web-2");
        assert!(!is_seen(self.network, "web-1"));
        cable.cable(true);
        self.until_both();
        self.finish();
        wait::until("the host that was cut off", || is_seen(self.network, "web-1").then_some(()));
        last
    }

    fn count(&self, how: Ended) -> usize {
        self.ended.values().filter(|each| **each == how).count()
    }

    /// Those that may have run.
    fn lost(&self) -> Vec<u64> {
        let lost = |(_, how): &(&u64, &Ended)| **how == Ended::Lost;
        self.ended.iter().filter(lost).map(|(number, _)| *number).collect()
    }

    /// That each ask has one end, and it is true; and that each tell is performed.
    fn all_is_true(&self) {
        let all = [Ended::Answered, Ended::Lost, Ended::NotGiven].map(|how| self.count(how));
        assert_eq!(
            all.iter().sum::<usize>() as u64,
            self.sent,
            "answered, lost, not given: {all:?}"
        );
        let mut performed = BTreeMap::new();
        for number in greeted(self.network).iter().filter_map(|line| line.parse().ok()) {
            *performed.entry(number).or_default() += 1;
        }
        all_true(&self.ended, &performed);
        assert_eq!(self.kept, self.told);
        let mut missing = Vec::new();
        let done = wait::look(BOUND, || {
            let have: BTreeSet<String> = greeted(self.network).into_iter().collect();
            let is_missing = |number: &&u64| !have.contains(&format!("told {number}"));
            missing = self.told.iter().filter(is_missing).copied().collect();
            missing.is_empty().then_some(())
        });
        assert!(done.is_some(), "of {} tells these are lost: {missing:?}", self.told.len());
        for name in HOSTS {
            let messages = &self.network.machine(name).world.status()["messages"];
            assert_eq!(messages["dead"], 0, "{name}: {messages}");
        }
    }
}

#[test]
fn asks_of_a_host_that_is_cut_off_end_truly_and_the_other_one_goes_on() {
    let network = followed();
    let mut asking = Asking::new(&network);
    let last = asking.cut(true);
    assert!(asking.lost().iter().any(|number| *number > last), "the cable was not out");
    asking.all_is_true();
}

#[test]
fn a_claimed_program_loses_no_ask_that_comes_after_a_host_is_cut_off() {
    let network = followed();
    for name in WEBS {
        shell(network.machine(name), "echo 'claimed = true' >> hob.toml\nhob trust").succeeded();
    }
    wait::until("two hosts that claim it", || {
        let claimed = seen(&network).iter().filter(|each| each["claimed"] == true).count();
        (claimed == WEBS.len()).then_some(())
    });
    let mut asking = Asking::new(&network);
    for is_missed in [false, true] {
        let before = asking.lost();
        let last = asking.cut(is_missed);
        let lost = asking.lost();
        assert!(lost.iter().all(|number| *number <= last), "{lost:?} of {}", asking.sent);
        assert!(lost.len() <= before.len() + WINDOW, "{lost:?}");
    }
    asking.all_is_true();
}
