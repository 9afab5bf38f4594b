//! Apps of Rack beside servers of Rack.

use std::ffi::OsString;

use anyhow::Result;

use crate::Setting;
use crate::hob::Hob;
use crate::report::{Figure, Want};

use super::client::Page;
use super::server::Recipe;
use super::{WIDTHS, fact, hob_serve, named, ours, sides, told, trusted};

/// A fresh copy for each request, beside the plain way to that, and beside Thin, which has none.
pub(super) fn fork(setting: &Setting, hob: &Hob, figure: &mut Figure) -> Result<()> {
    let config = ours(setting, "config.ru");
    let plain = ours(setting, "forking.rb");
    let recipes = [
        hob_serve(hob, "hob, fork", "rack", &config, "isolation = \"fork\"\nworkers = 4")?,
        Recipe::new("a plain fork", "ruby-rack", &["ruby", &plain, &config, "PORT"]),
        thin("thin", &config, &[]),
        thin("thin, threaded", &config, &["--threaded", "--threadpool-size", "16"]),
    ];
    let sides = sides(setting, hob, "http, fork", &recipes)?;
    told(figure, &sides);
    let [hob, plain] = [&sides[0], &sides[1]];
    for (at, width) in WIDTHS.iter().enumerate().skip(1) {
        let ratio = hob.measured[at].stream.throughput() / plain.measured[at].stream.throughput();
        let name = format!("fork: throughput over a plain fork, at {width}");
        figure.target(&name, Want::AtLeast(1.8), ratio);
    }
    if let Some(thin) = named(&sides, "thin, threaded") {
        let ratio = |at: usize| hob.measured[at].p50() / thin.measured[at].p50();
        figure.target("fork: p50 over Thin threaded, at 1", Want::AtMost(2.0), ratio(0));
        for (at, width) in WIDTHS.iter().enumerate().skip(1) {
            fact(figure, &format!("fork: p50 over Thin threaded, at {width}"), ratio(at));
        }
    }
    Ok(())
}

/// Workers that go on.
pub(super) fn prefork(setting: &Setting, hob: &Hob, figure: &mut Figure) -> Result<()> {
    let config = ours(setting, "config.ru");
    let unicorn = ours(setting, "unicorn.rb");
    let mut puma = Recipe::new(
        "puma 2x5",
        "puma",
        &["puma", "-q", "-e", "production", "-w", "2", "-t", "5:5", "-b", "tcp://127.0.0.1:PORT"],
    );
    puma.words.push(config.clone().into());
    let terms = "isolation = \"prefork\"\nworkers = { min = 2, max = 2 }";
    let unicorn_words = ["unicorn", "-E", "none", "-c", &unicorn, "-l", "127.0.0.1:PORT", &config];
    let recipes = [
        hob_serve(hob, "hob, prefork", "rack", &config, terms)?,
        puma,
        Recipe::new("unicorn 2", "unicorn", &unicorn_words),
        thin("thin", &config, &[]),
    ];
    let sides = sides(setting, hob, "http, prefork", &recipes)?;
    told(figure, &sides);
    let hob = &sides[0];
    let wide = WIDTHS.len() - 1;
    if let Some(puma) = named(&sides, "puma 2x5") {
        let (ours, theirs) = (&hob.measured[wide], &puma.measured[wide]);
        let cpu = hob.measured[1].cpu() / puma.measured[1].cpu();
        figure.target("prefork: processor time over puma's, at 16", Want::AtMost(0.7), cpu);
        let cpu = hob.measured[1].kept_cpu() / puma.measured[1].kept_cpu();
        fact(figure, "prefork: processor time over puma's, at 16, connections kept", cpu);
        let ratio = ours.stream.throughput() / theirs.stream.throughput();
        figure.target("prefork: throughput over puma's, at 64", Want::AtLeast(1.3), ratio);
        let p99 = ours.p99() / theirs.p99();
        figure.target("prefork: p99 over puma's, at 64", Want::AtMost(0.8), p99);
    }
    for name in ["unicorn 2", "thin"] {
        if let Some(other) = named(&sides, name) {
            let ratio =
                hob.measured[wide].stream.throughput() / other.measured[wide].stream.throughput();
            let name = format!("prefork: throughput over {name}, at 64");
            figure.target(&name, Want::AtLeast(1.0), ratio);
        }
    }
    fact(figure, "prefork: memory of the server alone, KiB", hob.memory_kib.0);
    figure.target("prefork: the server alone, MiB", Want::AtMost(12.0), hob.memory_kib.0 / 1024.0);
    Ok(())
}

/// The example, whose app is mounted twice, beside Thin.
pub(super) fn example(setting: &Setting, hob: &Hob, figure: &mut Figure) -> Result<()> {
    let from = setting.root.join("examples/foolsgold");
    let folder = hob.folder("foolsgold")?;
    for name in ["config.ru", "public/index.html", "public/gold.css", "public/gold.svg"] {
        let to = folder.join(name);
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::copy(from.join(name), to)?;
    }
    std::fs::create_dir_all(folder.join("state"))?;
    let toml = std::fs::read_to_string(from.join("hob.toml"))?;
    let site = |name, mount: &str| {
        let mut recipe = trusted(hob, name, &folder, &toml)?;
        recipe.page = Page::new(mount, TOTAL);
        Ok::<_, anyhow::Error>(recipe)
    };
    let config = folder.join("config.ru").display().to_string();
    let mut recipes = [
        site("hob, shared-nothing", "/fools-gold/shared-nothing")?,
        site("hob, prefork", "/fools-gold/prefork")?,
        thin("thin", &config, &[]),
        thin("thin, threaded", &config, &["--threaded", "--threadpool-size", "16"]),
    ];
    for recipe in &mut recipes[2..] {
        recipe.page = Page::new("/", TOTAL);
    }
    let sides = sides(setting, hob, "http, the example", &recipes)?;
    told(figure, &sides);
    let Some(thin) = named(&sides, "thin") else { return Ok(()) };
    for (name, side) in [("shared-nothing", &sides[0]), ("prefork", &sides[1])] {
        for (at, width) in WIDTHS.iter().enumerate() {
            let (ours, theirs) = (&side.measured[at], &thin.measured[at]);
            let ratio = ours.p50() / theirs.p50();
            fact(figure, &format!("example, {name}: p50 over Thin, at {width}"), ratio);
            let ratio = ours.stream.throughput() / theirs.stream.throughput();
            fact(figure, &format!("example, {name}: throughput over Thin, at {width}"), ratio);
        }
    }
    Ok(())
}

/// What the page of the example has.
const TOTAL: &[u8] = b"<dt>total requests</dt>";

fn thin(name: &'static str, config: &str, more: &[&str]) -> Recipe {
    let words =
        ["thin", "start", "-q", "-e", "production", "-a", "127.0.0.1", "-p", "PORT", "-R", config];
    let mut recipe = Recipe::new(name, "thin", &words);
    recipe.words.extend(more.iter().map(OsString::from));
    recipe
}
