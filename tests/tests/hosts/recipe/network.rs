//! Machines that are network namespaces, each with a name of its own and a cable to one bridge.
//!
//! The namespaces have no names on this machine: the kernel takes them away, with their cables, when
//! the last process in them ends. So two runs do not meet, and nothing is left of one that panics.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hob_tests::run::kill;
use hob_tests::{Run, World, leftovers, wait};
use rustix::process::Signal;

use super::super::server;

/// Where `ip` and its like are.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
const NETWORK: &str = "10.77.0";
/// How a namespace is made: by root, and by others.
const WAYS: [&[&str]; 2] = [&[], &["--user", "--map-root-user"]];
/// A name, a network of its own, and nothing else: it stays until its stdin ends.
const HOLD: &str = "hostname \"$1\" && ip link set lo up && echo up && exec cat >/dev/null";
/// Copies between machines whose homes are folders of one disk.
const SCP: &str = r#"#!/bin/sh
set -eu
for to; do :; done
while [ $# -gt 1 ]; do cp -- "$1" "MACHINES/${to%%:*}/${to#*:}"; shift; done
"#;

/// A machine. Its world is dropped before what is left in its network is ended.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) name: &'static str,
    pub(super) world: World,
    space: Space,
}

/// A network namespace, and the process that keeps it.
#[derive(Debug)]
struct Space {
    holder: Child,
    /// What enters it.
    enter: Vec<String>,
    link: PathBuf,
}

/// A server and three hosts. Dropping it leaves nothing.
#[derive(Debug)]
pub(super) struct Network {
    hosts: Vec<Machine>,
    server: Machine,
}

impl Space {
    /// Makes one by commands that stand before `unshare`.
    fn make(before: &[String], way: &[&str], name: &str) -> Result<Space, String> {
        let mut words: Vec<String> = before.to_vec();
        words.extend(["unshare", "--net", "--uts"].map(str::to_owned));
        words.extend(way.iter().map(|word| (*word).to_owned()));
        words.extend(["sh", "-c", HOLD, "sh", name].map(str::to_owned));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env_clear().env("PATH", PATH).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let alone = hob_tests::alone();
        let mut holder = command.spawn().map_err(|error| format!("{}: {error}", words[0]))?;
        drop(alone);
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line != "up\n" {
            let mut why = String::new();
            holder.stderr.take().unwrap().read_to_string(&mut why).unwrap();
            holder.wait().unwrap();
            return Err(why.trim().to_owned());
        }
        let pid = holder.id().to_string();
        let user: &[&str] =
            if way.is_empty() { &[] } else { &["--user", "--preserve-credentials"] };
        let enter = [&["nsenter", "--target", &pid, "--net", "--uts"], user].concat();
        let enter = enter.into_iter().map(str::to_owned).collect();
        let link = std::fs::read_link(format!("/proc/{pid}/ns/net")).unwrap();
        Ok(Space { holder, enter, link })
    }

    /// The first one, by the first way that this machine allows.
    fn first(name: &str) -> (Space, bool) {
        let mut refused = Vec::new();
        for way in WAYS {
            match Space::make(&[], way, name) {
                Ok(space) => return (space, !way.is_empty()),
                Err(why) => refused.push(format!("unshare --net {}: {why}", way.join(" "))),
            }
        }
        panic!(
            "this test needs network namespaces, and this machine makes none: {}. It takes root, or \
             user namespaces for everybody (sysctl kernel.apparmor_restrict_unprivileged_userns=0), \
             and the commands ip, unshare, nsenter and hostname",
            refused.join("; ")
        );
    }

    /// One that knows the users of another one.
    fn beside(&self, has_users: bool, name: &str) -> Space {
        let mut before = Vec::new();
        if has_users {
            before.clone_from(&self.enter);
            before.retain(|word| word != "--net" && word != "--uts");
        }
        let mut space =
            Space::make(&before, &[], name).unwrap_or_else(|why| panic!("{name}: {why}"));
        if has_users {
            space.enter.extend(["--user", "--preserve-credentials"].map(str::to_owned));
        }
        space
    }

    /// Does something with its network.
    fn ip(&self, words: &str) {
        let mut command = Command::new(&self.enter[0]);
        command.args(&self.enter[1..]).arg("ip").args(words.split_whitespace());
        let alone = hob_tests::alone();
        let child = command.env("PATH", PATH).stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
        drop(alone);
        let done = child.unwrap().wait_with_output().unwrap();
        assert!(done.status.success(), "ip {words}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// Ends what runs in it, but for the process that keeps it: all of it was started here.
    fn end(&self) {
        let is_here = |pid: &u32| {
            let link = std::fs::read_link(format!("/proc/{pid}/ns/net"));
            *pid != self.holder.id() && link.is_ok_and(|link| link == self.link)
        };
        wait::look(Duration::from_secs(5), || {
            let left: Vec<u32> = leftovers::all().into_iter().filter(is_here).collect();
            left.iter().for_each(|pid| kill(*pid, Signal::KILL));
            left.is_empty().then_some(())
        });
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        self.end();
        if self.holder.kill().is_ok() {
            let _ = self.holder.wait();
        }
    }
}

impl Machine {
    fn new(name: &'static str, space: Space) -> Machine {
        let world = World::new();
        std::fs::create_dir(world.path("bin")).unwrap();
        symlink(world.binary(), world.path("bin/hob")).unwrap();
        Machine { name, world, space }
    }

    /// Any command on this machine.
    pub(super) fn run(&self, words: &[&str]) -> Run {
        let path = format!("{}:{PATH}", self.world.path("bin").display());
        self.world.run(words).env("PATH", path).under(&self.space.enter)
    }

    /// Pulls its cable out, or in.
    pub(super) fn cable(&self, is_in: bool) {
        self.space.ip(&format!("link set dev eth0 {}", if is_in { "up" } else { "down" }));
    }
}

impl Network {
    pub(super) fn new(names: &[&'static str]) -> Network {
        let (space, has_users) = Space::first("server");
        space.ip("link add name bridge type bridge");
        space.ip(&format!("address add {NETWORK}.1/24 dev bridge"));
        space.ip("link set dev bridge up");
        let server = Machine::new("server", space);
        let machines = server.world.path("machines");
        std::fs::create_dir(&machines).unwrap();
        for (name, file) in [("nats-server", server::binary()), ("nk", server::tool("nk"))] {
            symlink(file, server.world.path("bin").join(name)).unwrap();
        }
        let scp = SCP.replace("MACHINES", &machines.display().to_string());
        server.world.executable("../bin/scp", scp);
        let mut hosts = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let space = server.space.beside(has_users, name);
            let to = space.holder.id();
            let cable = format!("link add name {name} type veth peer name eth0 netns {to}");
            server.space.ip(&cable);
            server.space.ip(&format!("link set dev {name} master bridge up"));
            space.ip(&format!("address add {NETWORK}.{}/24 dev eth0", index + 2));
            let machine = Machine::new(name, space);
            machine.cable(true);
            symlink(machine.world.path("home"), machines.join(name)).unwrap();
            hosts.push(machine);
        }
        Network { hosts, server }
    }

    /// The machine of this name.
    pub(super) fn machine(&self, name: &str) -> &Machine {
        let mut all = self.hosts.iter().chain([&self.server]);
        all.find(|machine| machine.name == name).unwrap_or_else(|| panic!("no machine {name}"))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.hosts.clear();
        // The server of NATS, which no `hob stop` ends.
        self.server.space.end();
    }
}
