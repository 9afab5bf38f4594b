//! The same requests by `hob check`, by Hurl and by Newman: 36 endpoints as four kinds of users, a
//! status and one fact of the content each, at a server of this process. Nobody writes reports.
//!
//! Hob reads its own file, and the files that Hurl reads. Hurl asks its files at one time, and what is in
//! one after the other; Newman asks all one after the other. `make bench-deps` installs both.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::json;

use super::endpoints::{ENDPOINTS, GAP, JOBS, PROFILES, check, file, serve};
use crate::Setting;
use crate::figures::private;
use crate::measure::{Series, Side, Slot, microseconds};
use crate::progress::Progress;
use crate::report::{Figure, Want};

const ROUNDS: usize = 20;
const GOOD: &str = "exit status: 0";

pub(super) fn measure(setting: &Setting, figure: &mut Figure) -> Result<()> {
    let server = serve()?;
    let hob = private(setting, &[])?;
    let folder = hob.folder("peers")?;
    std::fs::write(folder.join("site.check.toml"), file(server))?;
    std::fs::write(folder.join("site.json"), collection(server).to_string())?;
    let files: Vec<String> = PROFILES.iter().map(|user| format!("{user}.hurl")).collect();
    for (name, user) in files.iter().zip(PROFILES) {
        std::fs::write(folder.join(name), entries(server, user))?;
    }
    let tools = setting.root.join("target/tools");
    let jobs = JOBS.to_string();
    let peer = |name: &str, binary: &Path, words: &[&str]| -> Result<Side> {
        ensure!(binary.exists(), "{} is not here: run make bench-deps first", binary.display());
        let all = std::iter::once(binary.as_os_str()).chain(words.iter().map(OsStr::new));
        let all: Vec<_> = all.collect();
        Ok(Side { folder: folder.clone(), ..hob.plain(name, &all, None) })
    };
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    let as_hurl = [&["check", "--jobs", &jobs][..], &names].concat();
    let hurl = [&["--test", "--jobs", &jobs][..], &names].concat();
    let newman = ["run", "site.json", "--reporters", "cli"];
    let own = check(&hob, "hob check", &folder, &[]);
    let mut slot = Slot::new()?;
    let kept = hob.folder("state")?.join("hob/checks");
    let sides = [
        own,
        peer("hob check, Hurl's files", hob.binary(), &as_hurl)?,
        peer("hurl --test", &tools.join("hurl/bin/hurl"), &hurl)?,
        peer("newman", &tools.join("newman/node_modules/.bin/newman"), &newman)?,
    ];
    let mut series = sides.each_ref().map(|side| Series::named(&side.name));
    let (count, mut progress) = (setting.rounds(ROUNDS), Progress::new("peers of checks"));
    for round in 0..=count {
        progress.at(round, count);
        for (one, side) in series.iter_mut().zip(&sides) {
            // With runs before, hob asks anew what is slower by chance.
            if kept.exists() {
                std::fs::remove_dir_all(&kept)?;
            }
            std::thread::sleep(GAP);
            let run = side.run(&mut slot)?;
            ensure!(run.output.exit == GOOD, "{} failed: {:?}", side.name, run.output);
            if round > 0 {
                one.us.push(microseconds(run.took));
            }
        }
    }
    progress.done();
    series.iter().for_each(|one| figure.series(one));
    let [own, as_hurl, hurl, newman] = &series;
    let ratio = figure.ratio("hurl over hob check", hurl, own);
    figure.target("hurl over hob check", Want::AtLeast(2.0), ratio.of_medians);
    figure.ratio("hurl over hob check of the same files", hurl, as_hurl);
    let ratio = figure.ratio("newman over hob check", newman, own);
    figure.target("newman over hob check", Want::AtLeast(200.0), ratio.of_medians);
    hob.stop()
}

/// A file of Hurl's: all endpoints as one user.
fn entries(server: SocketAddr, user: &str) -> String {
    let mut text = String::new();
    for number in 0..ENDPOINTS {
        let _ = writeln!(text, "GET http://{server}/api/{number}");
        if user != "anonymous" {
            let _ = writeln!(text, "[BasicAuth]\n{user}: x");
        }
        let _ = writeln!(text, "HTTP 200\n[Asserts]\njsonpath \"$.entries\" count >= 1\n");
    }
    text
}

/// A collection of Postman's: the same for all users.
fn collection(server: SocketAddr) -> serde_json::Value {
    let test = "pm.test('entries', () => { pm.response.to.have.status(200); \
        pm.expect(pm.response.json().entries.length).to.be.at.least(1); });";
    let item = |user: &str, number: usize| {
        let basic =
            json!([{ "key": "username", "value": user }, { "key": "password", "value": "x" }]);
        let auth = match user {
            "anonymous" => json!({ "type": "noauth" }),
            _ => json!({ "type": "basic", "basic": basic }),
        };
        let url = format!("http://{server}/api/{number}");
        json!({
            "name": format!("{user} {number}"),
            "event": [{ "listen": "test", "script": { "exec": [test], "type": "text/javascript" } }],
            "request": { "method": "GET", "auth": auth, "url": url },
        })
    };
    let of = |user: &'static str| (0..ENDPOINTS).map(move |number| item(user, number));
    let items: Vec<_> = PROFILES.into_iter().flat_map(of).collect();
    let schema = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json";
    json!({ "info": { "name": "site", "schema": schema }, "item": items })
}
