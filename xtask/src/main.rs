//! Chores of the repository, in its own language: `cargo xtask NAME`.
//!
//! Owns nothing of the product. `tidy` is also a test, so that `cargo test` finds what it finds.
//! Deliberately not here: building, testing and measuring (see the Makefile and `bench/`).

mod dist;
#[cfg(feature = "cli")]
mod manual;
mod tidy;
mod wire;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

const USAGE: &str = "usage: cargo xtask COMMAND
  tidy         checks the house rules of the repository
  wire         writes what comes of hob-wire's schema: tables in docs/wire.md, constants of runtimes
  bless-wire   writes the hash of the wire into docs/wire.md, after the page was read
  dist HOB GENERATED FOLDER  packs a binary, with man pages and completions, for people to install
with `--features cli`, which builds hob:
  man FOLDER          writes man pages
  completions FOLDER  writes shell completions";

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = root()?;
    match arguments.as_slice() {
        ["tidy"] => report(&tidy::check(&root)?),
        ["wire"] => {
            for path in wire::write(&root)? {
                say(&path);
            }
            Ok(ExitCode::SUCCESS)
        }
        ["bless-wire"] => {
            say(&wire::hash::bless(&root)?);
            Ok(ExitCode::SUCCESS)
        }
        ["dist", hob, generated, folder] => {
            for line in dist::make(&root, Path::new(hob), Path::new(generated), Path::new(folder))?
            {
                say(&line);
            }
            Ok(ExitCode::SUCCESS)
        }
        #[cfg(feature = "cli")]
        ["man", folder] => {
            say(&manual::man(Path::new(folder))?);
            Ok(ExitCode::SUCCESS)
        }
        #[cfg(feature = "cli")]
        ["completions", folder] => {
            say(&manual::completions(Path::new(folder))?);
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!("{USAGE}"),
    }
}

/// Prints the findings; faults fail, notes do not.
fn report(found: &tidy::Found) -> Result<ExitCode> {
    for note in &found.notes {
        say(&format!("note: {note}"));
    }
    for fault in &found.faults {
        say(&format!("tidy: {fault}"));
    }
    say(&format!(
        "tidy: {} files, {} faults, {} notes",
        found.files,
        found.faults.len(),
        found.notes.len()
    ));
    Ok(if found.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The one place where this crate writes for people.
#[expect(clippy::print_stdout, reason = "a chore talks to the person who started it")]
fn say(line: &str) {
    println!("{line}");
}

/// The repository's root: the folder above this crate.
fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here.parent().context("xtask lies in the repository")?.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let found = tidy::check(&root().unwrap()).unwrap();
        assert!(found.files > 20, "tidy looked at {} files only", found.files);
        assert!(found.faults.is_empty(), "\n{}\n", found.faults.join("\n"));
    }
}
