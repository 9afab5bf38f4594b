//! Editors that format a buffer by a command's name, with the settings of docs/guides/editors.md.

use super::{had, until_warm, with_shim};

/// Formats a whole file, writes it, and leaves.
const KEYS: [&str; 6] = ["-c", "setlocal formatprg=tidy-lines", "-c", "normal! gggqG", "-c", "wq"];

fn formats(editor: &str, quiet: &[&str]) {
    let (world, path) = with_shim();
    if had(&world, editor).is_none() {
        return;
    }
    let file = world.path("work/list.txt");
    let run = world.run(&[editor]).args(quiet).args(&KEYS).args(&["list.txt"]).env("PATH", path);
    world.file("list.txt", "b\nc\na\n");
    let check = || {
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "a\nb\nc\n");
        std::fs::write(&file, "b\nc\na\n").unwrap();
    };
    until_warm(&world, "tidy-lines", &run, check);
}

#[test]
fn vim_formats_a_buffer_warm() {
    formats("vim", &["-Nu", "NONE", "-es"]);
}

#[test]
fn neovim_formats_a_buffer_warm() {
    formats("nvim", &["--headless", "-u", "NONE"]);
}
