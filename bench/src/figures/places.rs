//! Where people are: which part of the calls is warm, from the third on, in twelve places from which
//! a program may be started. Each place is a script in `bench/places`, with a hob of its own.
//!
//! Owns: what a place is given, and what its records say. Not here: how fast it is.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail, ensure};
use serde_json::Value;

use super::{private, private_in};
use crate::Setting;
use crate::hob::Hob;
use crate::progress::Progress;
use crate::report::{Figure, Want};
use crate::venv;

/// What every place knows beside its own script.
const LIB: &str = "\
# HOB is the binary, HELLO a script, CALLS how many calls are to be made, GAP the seconds between
# two, PLACE a folder of the place's own, OUT where the records go.
set -euo pipefail
cd \"$PLACE\"

# Runs its words so many times.
often() {
  local n
  for ((n = 0; n < CALLS; n++)); do
    \"$@\"
    sleep \"$GAP\"
  done
}

# What became of the calls, the oldest first.
records() {
  \"$HOB\" log -n 1000 --json >\"$OUT\"
}
";
/// What is called: with an import, so that there is something to be warm.
const HELLO: &str = "import json\nimport sys\n\nprint(json.dumps(len(sys.argv)))\n";
/// Calls of each place. The first ones teach; a person or a hook makes them so far apart.
const CALLS: usize = 12;
const TAUGHT_AFTER: usize = 2;
const GAP_SECONDS: &str = "1";
/// How long a place may take.
const PLACE_SECONDS_MAX: &str = "300";
/// The exit code of `timeout` for what took longer.
const TOO_LONG: i32 = 124;

/// One place: the name of its script, and the commands without which it is not to be had.
struct Place {
    name: &'static str,
    script: &'static str,
    needs: &'static [&'static str],
    /// Only root can be there.
    as_root: bool,
}

const fn place(name: &'static str, script: &'static str, needs: &'static [&'static str]) -> Place {
    Place { name, script, needs, as_root: false }
}

const PLACES: [Place; 12] = [
    place("terminal", include_str!("../../places/terminal.sh"), &["script"]),
    place("make -j", include_str!("../../places/make.sh"), &["make"]),
    place("flock", include_str!("../../places/flock.sh"), &["flock"]),
    place("process substitution", include_str!("../../places/substitution.sh"), &[]),
    place("git commit", include_str!("../../places/git-commit.sh"), &["git"]),
    place("pre-commit", include_str!("../../places/pre-commit.sh"), &["git"]),
    place("tmux", include_str!("../../places/tmux.sh"), &["tmux"]),
    place("editor's terminal", include_str!("../../places/editor.sh"), &["script"]),
    place("cron", include_str!("../../places/cron.sh"), &["setsid"]),
    place("systemd unit", include_str!("../../places/unit.sh"), &[]),
    Place {
        name: "sudo, another user",
        script: include_str!("../../places/other-user.sh"),
        needs: &["runuser"],
        as_root: true,
    },
    Place {
        name: "container, no /run/user",
        script: include_str!("../../places/container.sh"),
        needs: &["unshare", "mount"],
        as_root: true,
    },
];

/// What was found in a place.
#[derive(Debug, PartialEq)]
struct Found {
    calls: usize,
    warm: usize,
    /// Why others were not, the most frequent reason first.
    why: String,
}

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let mut figure = Figure::new("places", "calls that are warm from the third on, by place");
    let mut table = format!("{:26} {:>5} {:>5}   cold because\n", "place", "calls", "warm");
    let chosen: Vec<&Place> = PLACES.iter().filter(|place| setting.is_part(place.name)).collect();
    let names = PLACES.map(|place| place.name).join(", ");
    ensure!(!chosen.is_empty(), "--only is one of: {names}");
    let mut progress = Progress::new("going to places");
    let mut whole = 0;
    for (number, place) in chosen.iter().enumerate() {
        progress.at(number, chosen.len());
        // One place that cannot be had must not hide the others.
        let found = visit(setting, place).unwrap_or_else(|error| Found {
            calls: 0,
            warm: 0,
            why: format!("not tried: {error:#}"),
        });
        table += &found.line(place.name);
        whole += usize::from(found.is_warm());
        figure.target(place.name, Want::AtLeast(1.0), found.part());
    }
    progress.done();
    crate::say(&table);
    #[expect(clippy::cast_precision_loss, reason = "at most twelve")]
    let (whole, all) = (whole as f64, chosen.len() as f64);
    figure.target("places where all of them are", Want::AtLeast(all), whole);
    Ok(figure)
}

impl Found {
    fn is_warm(&self) -> bool {
        self.calls > 0 && self.calls == self.warm
    }

    fn part(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "some ten calls")]
        let part = self.warm as f64 / self.calls.max(1) as f64;
        part
    }

    fn line(&self, name: &str) -> String {
        format!("{name:26} {:>5} {:>5}   {}\n", self.calls, self.warm, self.why)
    }
}

/// Makes the calls of a place.
fn visit(setting: &Setting, place: &Place) -> Result<Found> {
    if let Some(why) = missing(place) {
        return Ok(Found { calls: 0, warm: 0, why });
    }
    let hob = match place.name {
        "pre-commit" => private_in(
            setting,
            &venv::make(&setting.root, "venv-places", "requirements-places.txt")?,
        )?,
        _ => private(setting, &[])?,
    };
    let (folder, lib) = (hob.folder("place")?, hob.folder("lib")?);
    for (name, text) in [("lib.sh", LIB), ("place.sh", place.script), ("hello.py", HELLO)] {
        std::fs::write(lib.join(name), text)?;
    }
    let out = lib.join("records");
    // Where another user is to start it, its folders may be closed to that one.
    let binary = lib.join("hob");
    std::fs::copy(hob.binary(), &binary)?;
    let calls = setting.rounds(CALLS).max(TAUGHT_AFTER + 1);
    let mut command = Command::new("timeout");
    hob.place(&mut command);
    command
        .args([PLACE_SECONDS_MAX, "bash", "-c", ". \"$LIB\"; . \"$0\""])
        .arg(lib.join("place.sh"));
    for (name, value) in [
        ("HOB", binary.as_path()),
        ("HELLO", &lib.join("hello.py")),
        ("LIB", &lib.join("lib.sh")),
        ("PLACE", &folder),
        ("OUT", &out),
        ("CALLS", Path::new(&calls.to_string())),
        ("GAP", Path::new(GAP_SECONDS)),
    ] {
        command.env(name, value);
    }
    let ended = command.stdin(Stdio::null()).output()?;
    ensure!(ended.status.code() != Some(TOO_LONG), "it took more than {PLACE_SECONDS_MAX} s");
    if !ended.status.success() {
        let text = String::from_utf8_lossy(&ended.stderr).into_owned() + &said(&hob);
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        bail!("its script failed: {}", last.unwrap_or("it did not say why"));
    }
    found(&std::fs::read_to_string(&out)?, calls)
}

/// What the calls said, for a person who looks for what went wrong.
fn said(hob: &Hob) -> String {
    let said = hob.folder("place").map(|folder| folder.join("said"));
    said.and_then(|said| Ok(std::fs::read_to_string(said)?)).unwrap_or_default()
}

/// Why a place cannot be had here.
fn missing(place: &Place) -> Option<String> {
    if place.as_root && !rustix::process::getuid().is_root() {
        return Some("not tried: only root can be there".to_owned());
    }
    let is_there = |name: &&str| {
        let look = format!("PATH=$PATH:/usr/sbin:/sbin command -v {name}");
        let look = Command::new("sh").args(["-c", &look]).output();
        look.is_ok_and(|output| output.status.success())
    };
    let missing = place.needs.iter().find(|name| !is_there(name))?;
    Some(format!("not tried: there is no {missing} here"))
}

/// What the records of a place say. A call that found no daemon has none.
fn found(records: &str, calls: usize) -> Result<Found> {
    let mut all = Vec::new();
    for line in records.lines() {
        all.push(serde_json::from_str::<Value>(line)?);
    }
    ensure!(all.len() <= calls, "{} records of {calls} calls", all.len());
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut warm = 0;
    for record in all.iter().skip(TAUGHT_AFTER) {
        if record["warm"] == true {
            warm += 1;
        } else {
            let reason = record["reason"].as_str().unwrap_or("not said").to_owned();
            *reasons.entry(reason).or_default() += 1;
        }
    }
    let unknown = calls - all.len();
    if unknown > 0 {
        reasons.insert("no record".to_owned(), unknown);
    }
    let mut reasons: Vec<(usize, String)> =
        reasons.into_iter().map(|(reason, count)| (count, reason)).collect();
    reasons.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let why: Vec<String> =
        reasons.iter().map(|(count, reason)| format!("{reason} ({count})")).collect();
    Ok(Found { calls: calls - TAUGHT_AFTER, warm, why: why.join(", ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_calls_do_not_count_and_one_without_a_record_is_cold() {
        let records = "{\"warm\":false,\"reason\":\"learning\"}\n".repeat(2)
            + &"{\"warm\":true}\n".repeat(3)
            + &"{\"warm\":false,\"reason\":\"descriptors\"}\n".repeat(2);
        let seen = found(&records, 8).unwrap();
        assert_eq!((seen.calls, seen.warm), (6, 3));
        assert_eq!(seen.why, "descriptors (2), no record (1)");
        assert!(!seen.is_warm());
        let good = found(&records.lines().take(5).collect::<Vec<_>>().join("\n"), 5).unwrap();
        assert!(good.is_warm() && good.why.is_empty());
        assert!(found(&records, 3).is_err(), "more records than calls");
    }

    #[test]
    fn there_are_twelve_and_each_tells_what_became_of_its_calls() {
        let names: std::collections::BTreeSet<&str> =
            PLACES.iter().map(|place| place.name).collect();
        assert_eq!(names.len(), 12);
        for place in &PLACES {
            assert!(place.script.starts_with("# "), "{}", place.name);
            assert!(place.script.contains("records\n"), "{}", place.name);
        }
    }
}
