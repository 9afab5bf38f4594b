//! Man pages and shell completions, from the command line's own definition.

use std::path::Path;

use anyhow::{Context, Result};
use clap_complete::{Generator as _, Shell};

/// Writes `hob.1` and one page for each verb into a folder.
pub(crate) fn man(folder: &Path) -> Result<String> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(hob::verbs::command(), folder).context("cannot write man pages")?;
    let count = std::fs::read_dir(folder)?.count();
    Ok(format!("man pages: {count} in {}", folder.display()))
}

/// Writes completions for the usual shells into a folder.
pub(crate) fn completions(folder: &Path) -> Result<String> {
    std::fs::create_dir_all(folder)?;
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        let script = hob::verbs::completions(shell).context("a shell that is not known")?;
        std::fs::write(folder.join(shell.file_name("hob")), script)?;
    }
    Ok(format!("completions: {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of a command's pages: its own, and those of its visible verbs.
    fn pages(command: &clap::Command, name: &str, found: &mut Vec<String>) {
        found.push(name.to_owned());
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            pages(verb, &format!("{name}-{}", verb.get_name()), found);
        }
    }

    #[test]
    fn each_verb_has_a_man_page_that_says_what_it_does() {
        let folder = tempfile::tempdir().unwrap();
        man(folder.path()).unwrap();
        let command = hob::verbs::command();
        let mut wanted = Vec::new();
        pages(&command, "hob", &mut wanted);
        assert!(wanted.len() > 15 && wanted.contains(&"hob-shim-add".to_owned()), "{wanted:?}");
        for name in &wanted {
            let page = folder.path().join(format!("{name}.1"));
            let text = std::fs::read_to_string(&page)
                .unwrap_or_else(|error| panic!("{}: {error}", page.display()));
            for head in [".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION"] {
                assert!(text.contains(head), "{name}: no {head}");
            }
        }
        let written = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(written, wanted.len(), "pages of what is no verb");
    }

    #[test]
    fn completions_ask_hob_itself_in_every_shell() {
        let folder = tempfile::tempdir().unwrap();
        completions(folder.path()).unwrap();
        for (file, shell) in [("hob.bash", "bash"), ("_hob", "zsh"), ("hob.fish", "fish")] {
            let text = std::fs::read_to_string(folder.path().join(file)).unwrap();
            assert!(text.contains(&format!("HOB_COMPLETE={shell} hob")), "{file}: {text}");
        }
    }

    /// `make TARGET` with what was generated there, into a folder.
    fn make(target: &str, generated: &Path, into: &Path) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let set = |name: &str, path: &Path| format!("{name}={}", path.display());
        let made = std::process::Command::new("make")
            .current_dir(root)
            .args([target, "PREFIX=/usr", "HOB=/bin/true"])
            .args([set("GENERATED", generated), set("DESTDIR", into)])
            .output()
            .unwrap();
        assert!(made.status.success(), "make {target}: {made:?}");
    }

    fn files(folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                found.extend(files(&entry.path()));
            } else {
                found.push(entry.file_name().into_string().unwrap());
            }
        }
        found
    }

    #[test]
    fn what_is_installed_is_all_that_was_made_and_uninstalling_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let (generated, into) = (folder.path().join("generated"), folder.path().join("root"));
        man(&generated.join("man")).unwrap();
        completions(&generated.join("completions")).unwrap();
        make("install", &generated, &into);
        let installed = files(&into);
        // The binary and three completions, with every page.
        assert_eq!(installed.len(), 4 + files(&generated.join("man")).len(), "{installed:?}");
        assert!(into.join("usr/bin/hob").exists() && installed.contains(&"hob-run.1".to_owned()));
        make("uninstall", &generated, &into);
        assert_eq!(files(&into), [""; 0]);
    }
}
