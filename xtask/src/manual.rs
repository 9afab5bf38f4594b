//! Man pages and shell completions, from the command line's own definition.

use std::path::Path;

use anyhow::{Context, Result};
use clap_complete::{Generator as _, Shell};

/// Writes `hob.1` and one page for each verb into a folder.
pub(crate) fn man(folder: &Path) -> Result<String> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(hob::cli::command(), folder).context("cannot write man pages")?;
    let mut count = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let page = sections(&std::fs::read_to_string(&path)?);
        let is_first = path.file_name().is_some_and(|name| name == "hob.1");
        std::fs::write(&path, page + if is_first { SURROUNDINGS } else { SEE_ALSO })?;
        count += 1;
    }
    Ok(format!("man pages: {count} in {}", folder.display()))
}

/// What is the same for each verb.
const SURROUNDINGS: &str = r"
.SH ENVIRONMENT
.TP
HOB=0
hob is bypassed: a program runs as without it.
.TP
HOB_DIR
The directory of the socket, an absolute path; else $XDG_RUNTIME_DIR/hob, /run/user/UID/hob or /tmp/hob\-UID.
.TP
HOB_MEMORY_MB, HOB_IDLE_EXIT_S, HOB_RECEIPTS=0, HOB_RING=0
Of the daemon: what all that waits may use together, after so many seconds without a call it ends, no receipt is kept, no span is noted.
.TP
HOB_SHIM_DIR
The folder of shims; else $XDG_DATA_HOME/hob/shims or ~/.local/share/hob/shims.
.TP
HOB_PLAIN=1, NO_COLOR=1
Words alone; no colour.
.SH FILES
.TP
$XDG_STATE_HOME/hob, ~/.local/state/hob
Receipts, sums, recordings, the outbox, the daemon's log.
.TP
$XDG_CONFIG_HOME/hob/config.toml, ~/.config/hob/config.toml
Bounds, a collector of receipts, a NATS server.
.TP
hob.toml
Programs and mounts of a project, once `hob trust` has allowed it.
";

/// Where that is.
const SEE_ALSO: &str = "
.SH SEE ALSO
hob(1), for ENVIRONMENT and FILES
";

/// The page with what stands behind its options under the names that man pages have for it.
fn sections(page: &str) -> String {
    let Some((before, rest)) = page.split_once(".SH EXTRA\n") else { return page.to_owned() };
    let (extra, after) = match rest.find(".SH ") {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let (mut examples, mut codes, mut notes) = (String::new(), String::new(), String::new());
    for part in extra.split("\n\n") {
        let part = part.trim_end();
        if let Some(lines) = part.strip_prefix("Examples:\n") {
            examples = format!(".SH EXAMPLES\n.nf\n{lines}\n.fi\n");
        } else if let Some(text) = part.strip_prefix("Exit code: ") {
            codes = format!(".SH EXIT STATUS\n{text}\n");
        } else if !part.is_empty() {
            let head = if notes.is_empty() { ".SH NOTES\n" } else { ".PP\n" };
            // Lines that are set in stand as they are.
            let set_in = part.lines().any(|line| line.starts_with("  "));
            let (open, close) = if set_in { (".nf\n", "\n.fi") } else { ("", "") };
            notes += &format!("{head}{open}{part}{close}\n");
        }
    }
    format!("{before}{notes}{codes}{examples}{after}").trim_end().to_owned() + "\n"
}

/// Writes completions for the usual shells into a folder.
pub(crate) fn completions(folder: &Path) -> Result<String> {
    std::fs::create_dir_all(folder)?;
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        let script =
            hob::verbs::setup::completions::of(shell).context("a shell that is not known")?;
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
        let command = hob::cli::command();
        let mut wanted = Vec::new();
        pages(&command, "hob", &mut wanted);
        assert!(wanted.len() > 15 && wanted.contains(&"hob-shim-add".to_owned()), "{wanted:?}");
        for name in &wanted {
            let page = folder.path().join(format!("{name}.1"));
            let text = std::fs::read_to_string(&page)
                .unwrap_or_else(|error| panic!("{}: {error}", page.display()));
            for head in [".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH EXAMPLES"] {
                assert!(text.contains(head), "{name}: no {head}");
            }
            assert!(!text.contains(".SH EXTRA") && !text.contains("Exit code:"), "{name}: {text}");
        }
        let ask = std::fs::read_to_string(folder.path().join("hob-ask.1")).unwrap();
        assert!(ask.contains(".SH EXIT STATUS\n0 done, 1 the handler raised"), "{ask}");
        let own = std::fs::read_to_string(folder.path().join("hob.1")).unwrap();
        for head in [".SH ENVIRONMENT", ".SH FILES"] {
            assert!(own.contains(head), "{own}");
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
