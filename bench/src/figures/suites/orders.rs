//! What a program does before an import, generated (`bench/orders`), cold and through hob, in every
//! Python that the machine has and in its Ruby. The driver is the whole-system tests' own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;
use hob_tests::suites::orders::{self, Interpreter, Orders, Report, Tally, Told};

use super::under;
use crate::Setting;
use crate::progress::Progress;
use crate::report::{Figure, Want};
use crate::venv;

/// In how many Pythons each state meets each writer.
const ROUNDS: usize = 1;
/// Less than that part of the programs warm, and the figure says nothing.
const WARM_PART: f64 = 0.8;
/// The oldest and the newest minor version that hob makes warm.
const VERSIONS: std::ops::RangeInclusive<u32> = 9..=14;

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let mut under = under(setting);
    under.only = under.only.iter().flat_map(|words| words.split(',')).map(str::to_owned).collect();
    let place = setting.root.join("target/bench/orders");
    let interpreters = interpreters(setting);
    // `--quick` takes a tenth of the programs; it does not change which they are drawn from.
    let rounds = if setting.is_quick() { ROUNDS } else { setting.rounds(ROUNDS) };
    let orders = Orders { under: &under, interpreters: &interpreters, rounds, place: &place };
    let mut progress = Progress::new("orders: programs");
    let mut shown = BTreeSet::new();
    let report = orders::run(&orders, |told| match told {
        Told::Done(done, all) => progress.at(done, all),
        Told::Different(one) => {
            let language = one.interpreter.split('-').next().unwrap_or_default().to_owned();
            if shown.insert((language, one.state.clone())) {
                crate::say(&one.to_string());
            }
        }
    });
    progress.done();
    crate::say(&table(&report));
    Ok(figure(&report))
}

fn figure(report: &Report) -> Figure {
    let mut figure =
        Figure::new("orders", "what a program does before an import: there at the import?");
    figure.fact("programs", count(report.programs));
    figure.fact("left out: cold runs differ", count(report.unsteady));
    figure.fact("calls through hob", count(report.calls));
    figure.fact("of these warm", count(report.warm));
    figure.fact("of these with another result", count(report.wrong_calls));
    for (reason, calls) in &report.cold_again {
        figure.fact(&format!("cold after a warm call: {reason}"), count(*calls));
    }
    for (reason, programs) in &report.cold {
        figure.fact(&format!("programs that stay cold: {reason}"), count(programs.len()));
    }
    for (name, tally) in report.interpreters.iter().chain(&report.writers).chain(&report.states) {
        if tally.different > 0 {
            figure.fact(&format!("different: {name}"), count(tally.different));
        }
    }
    let cold: usize = report.cold.values().map(Vec::len).sum();
    let compared = report.programs - report.unsteady;
    let warm = count(compared - cold) / count(compared.max(1));
    figure.target("part of the programs that were warm", Want::AtLeast(WARM_PART), warm);
    figure.target("different", Want::AtMost(0.0), count(report.different.len()));
    figure
}

/// How many programs of each state differ, and which stay cold.
fn table(report: &Report) -> String {
    let mut lines = vec![format!("{:44} {:>8} {:>9}", "", "programs", "different")];
    let kinds = [&report.interpreters, &report.writers, &report.states];
    for (name, Tally { programs, different }) in kinds.into_iter().flatten() {
        lines.push(format!("{name:44} {programs:>8} {different:>9}"));
    }
    for (reason, names) in &report.cold {
        lines.extend(names.iter().map(|name| format!("stays cold ({reason}): {name}")));
    }
    for one in &report.different {
        let (state, folder) = (&one.state, one.folder.display());
        lines.push(format!("different: {}: {state}: {}\n    {folder}", one.interpreter, one.how));
    }
    lines.join("\n")
}

/// Every `CPython` of the machine, one of each version, with that of the setting first; and its Ruby.
fn interpreters(setting: &Setting) -> Vec<Interpreter> {
    let mut found: Vec<Interpreter> = Vec::new();
    for path in candidates(setting) {
        let Some(version) = python_version(&path) else { continue };
        let name = format!("python-{version}");
        if found.iter().all(|one| one.name != name) {
            found.push(Interpreter { language: "python", name, path });
        }
    }
    let path = PathBuf::from("/usr/bin/ruby");
    let says = ["-e", "print RUBY_VERSION"];
    if let Some(version) = said(&path, &says) {
        found.push(Interpreter { language: "ruby", name: format!("ruby-{version}"), path });
    }
    found
}

fn candidates(setting: &Setting) -> Vec<PathBuf> {
    let mut all = vec![setting.python.clone()];
    let path = std::env::var_os("PATH").unwrap_or_default();
    for folder in std::env::split_paths(&path) {
        all.extend(VERSIONS.map(|minor| folder.join(format!("python3.{minor}"))));
    }
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".pyenv"));
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from).or(home);
    let versions = pyenv.and_then(|root| std::fs::read_dir(root.join("versions")).ok());
    let mut installed: Vec<PathBuf> = versions
        .into_iter()
        .flatten()
        .flatten()
        .map(|one| one.path().join("bin/python3"))
        .collect();
    installed.sort();
    all.extend(installed);
    // A version manager's shim names an interpreter, or none.
    let real = |path: PathBuf| path.exists().then(|| venv::interpreter(&path).ok()).flatten();
    all.into_iter().filter_map(real).collect()
}

/// `3.11`, of those that hob makes warm.
fn python_version(python: &Path) -> Option<String> {
    let says = "import sys; print(sys.implementation.name, *sys.version_info[:2], end='')";
    let text = said(python, &["-c", says])?;
    let minor = text.strip_prefix("cpython 3 ")?.parse().ok()?;
    VERSIONS.contains(&minor).then(|| format!("3.{minor}"))
}

fn said(program: &Path, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[expect(clippy::cast_precision_loss, reason = "some thousand")]
fn count(number: usize) -> f64 {
    number as f64
}
