//! `hob activate SHELL`: what keeps the folder of shims first on PATH, also where a virtual environment
//! puts its own commands before it.

use clap::{Args, ValueEnum};
use hob_os::start::Start;

use super::folder::Folder;
use crate::failure::Failure;
use crate::output::out;

/// For which shell.
#[derive(Debug, Clone, Copy, Args)]
#[command(after_help = "\
In the shell's start file, last:
  bash, zsh   eval \"$(hob activate bash)\"
  fish        hob activate fish | source")]
pub(crate) struct Activate {
    /// The shell that is to take it
    shell: Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Each looks before a prompt, when what was typed before may have changed PATH; the exit status of
/// that is kept.
const BASH: &str = r#"_hob_shims=SHIMS
_hob_first() {
  local status=$? path
  case $PATH: in
    "$_hob_shims":*) ;;
    *)
      path=:$PATH:
      path=${path//":$_hob_shims:"/:}
      path=${path#:}
      export PATH=$_hob_shims:${path%:}
      ;;
  esac
  return "$status"
}
case ${PROMPT_COMMAND-} in
  *_hob_first*) ;;
  *) PROMPT_COMMAND=_hob_first${PROMPT_COMMAND:+;$PROMPT_COMMAND} ;;
esac
_hob_first
"#;

const ZSH: &str = r#"_hob_shims=SHIMS
_hob_first() {
  [[ $path[1] == "$_hob_shims" ]] || path=("$_hob_shims" "${(@)path:#$_hob_shims}")
}
typeset -ga precmd_functions
(( ${precmd_functions[(Ie)_hob_first]} )) || precmd_functions+=(_hob_first)
_hob_first
"#;

const FISH: &str = r#"set -g _hob_shims SHIMS
function _hob_first --on-event fish_prompt
    test "$PATH[1]" = "$_hob_shims"; and return
    set -l others
    for folder in $PATH
        test "$folder" = "$_hob_shims"; or set -a others $folder
    end
    set -gx PATH $_hob_shims $others
end
_hob_first
"#;

/// Prints it.
pub(crate) fn run(start: &Start, asked: Activate) -> Result<(), Failure> {
    let folder = Folder::of(start).ok_or_else(super::no_place)?;
    let Some(dir) = folder.dir.to_str().filter(|dir| !dir.contains([':', '\n'])) else {
        let dir = folder.dir.display();
        return Err(Failure::new(format!("{dir}: no name that PATH can hold; set HOB_SHIM_DIR")));
    };
    let (text, quoted) = match asked.shell {
        Shell::Bash => (BASH, quoted(dir, "'\\''")),
        Shell::Zsh => (ZSH, quoted(dir, "'\\''")),
        Shell::Fish => (FISH, quoted(&dir.replace('\\', "\\\\"), "\\'")),
    };
    out(&text.replace("SHIMS", &quoted))
}

fn quoted(text: &str, quote: &str) -> String {
    format!("'{}'", text.replace('\'', quote))
}
