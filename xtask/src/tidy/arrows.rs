//! Which crate may know which: the arrows of the design, read off the `Cargo.toml` files.
//!
//! Tests may use more (`[dev-dependencies]` are not looked at).

use std::path::Path;

use anyhow::{Context, Result};

use super::Found;

/// Each crate under `crates/`, and those of ours that it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    ("hob-wire", &[]),
    ("hob-core", &["hob-wire"]),
    ("hob-os", &[]),
    ("hob-entryfork", &["hob-os"]),
    ("hob-gate", &[]),
    ("hob-runtimes", &[]),
    ("hob-resolve", &["hob-os", "hob-runtimes"]),
    ("hob-client", &["hob-wire", "hob-os", "hob-resolve", "hob-runtimes"]),
    ("hob-actor-derive", &[]),
    ("hob-actor", &["hob-os", "hob-actor-derive"]),
    ("hob-worker", &["hob-wire", "hob-os", "hob-actor"]),
    (
        "hob-hooks",
        &["hob-wire", "hob-core", "hob-os", "hob-entryfork", "hob-resolve", "hob-runtimes"],
    ),
    ("hob-git", &[]),
    ("hob-http", &["hob-wire", "hob-core", "hob-os", "hob-git"]),
    ("hob-daemon", &["hob-wire", "hob-core", "hob-os", "hob-resolve", "hob-runtimes", "hob-hooks"]),
    ("hob-nats", &["hob-wire", "hob-core", "hob-daemon"]),
    ("hob-proof", &[]),
    ("hob-check", &["hob-core", "hob-os", "hob-resolve", "hob-http", "hob-daemon", "hob-proof"]),
    (
        "hob",
        &[
            "hob-wire",
            "hob-core",
            "hob-os",
            "hob-resolve",
            "hob-runtimes",
            "hob-client",
            "hob-daemon",
            "hob-hooks",
            "hob-http",
            "hob-nats",
            "hob-proof",
            "hob-check",
            "hob-worker",
        ],
    ),
];

/// Foreign crates that only one crate may use, with the reason.
const ONLY: &[(&str, &[&str], &str)] = &[
    (
        "libc",
        &["hob-os", "hob-entryfork"],
        "system calls that rustix lacks are quarantined in hob-os and hob-entryfork",
    ),
    (
        "tokio",
        &["hob-daemon", "hob-http", "hob-nats", "hob-actor"],
        "only the daemon, its HTTP front and its connection to other hosts have an async runtime; \
         hob-actor enters one, by a feature",
    ),
    ("async-nats", &["hob-nats"], "only one crate knows how hosts speak to one another"),
    ("clap", &["hob", "xtask"], "only the command line has a parser"),
];

/// Checks every crate under `crates/`.
pub(crate) fn check(root: &Path, found: &mut Found) -> Result<()> {
    for entry in std::fs::read_dir(root.join("crates")).context("cannot read crates/")? {
        let manifest = entry?.path().join("Cargo.toml");
        let Ok(text) = std::fs::read_to_string(&manifest) else { continue };
        let folder = manifest.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        let Some(name) = folder else { continue };
        check_crate(name, &dependencies(&text), found);
    }
    Ok(())
}

fn check_crate(name: &str, dependencies: &[String], found: &mut Found) {
    let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == name) else {
        found.faults.push(format!(
            "crates/{name}: a new crate needs a reason (docs/why) and its arrows in xtask"
        ));
        return;
    };
    for used in dependencies {
        let ours = used == "hob" || used.starts_with("hob-");
        if ours && !allowed.contains(&used.as_str()) {
            found.faults.push(format!("crates/{name}: must not depend on {used}"));
        }
        let only = ONLY.iter().find(|(foreign, _, _)| foreign == used);
        if let Some((_, users, reason)) = only
            && !users.contains(&name)
        {
            found.faults.push(format!("crates/{name}: must not depend on {used}: {reason}"));
        }
    }
}

/// The names in the tables of dependencies and build dependencies.
pub(crate) fn dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            inside = table.ends_with("dependencies") && !table.ends_with("dev-dependencies");
            // `[dependencies.tokio]` names its crate in the header.
            if let Some((before, name)) = table.rsplit_once("dependencies.")
                && !before.ends_with("dev-")
            {
                names.push(name.to_owned());
            }
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            let end = line.find(['.', '=', ' ']).unwrap_or(line.len());
            names.push(line[..end].to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nname = \"hob-core\"\n\n[dependencies]\nhob-wire.workspace = \
        true\nserde = { workspace = true }\n\n[dependencies.tokio]\nversion = \"1\"\n\n\
        [dev-dependencies]\nhob-os.workspace = true\n";

    #[test]
    fn dependencies_are_read_and_those_of_tests_are_not() {
        assert_eq!(dependencies(MANIFEST), ["hob-wire", "serde", "tokio"]);
    }

    #[test]
    fn an_arrow_that_points_up_is_found() {
        let check = |name: &str, used: &[&str]| {
            let mut found = Found::default();
            let used: Vec<String> = used.iter().map(|&name| name.to_owned()).collect();
            check_crate(name, &used, &mut found);
            found.faults.len()
        };
        assert_eq!(check("hob-core", &["hob-wire", "serde"]), 0);
        assert_eq!(check("hob-core", &["hob-os"]), 1);
        assert_eq!(check("hob-wire", &["libc"]), 1);
        assert_eq!(check("hob-new", &[]), 1);
    }
}
