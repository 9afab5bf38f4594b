//! What a shell is given for its completions; what it is offered then is `cli/complete`.

use clap_complete::Shell;

/// The variable by which a shell asks.
pub(crate) const ASKS: &str = "HOB_COMPLETE";

/// What a shell is given to begin with, in a file or at its start. It asks hob for the rest, so that it
/// is never of another version than hob. `None`: there is none for this shell yet.
#[must_use]
pub fn of(shell: Shell) -> Option<String> {
    let hob = "command -v hob >/dev/null";
    Some(match shell {
        Shell::Bash => format!("{hob} && source <({ASKS}=bash hob)\n"),
        Shell::Zsh => format!(
            "#compdef hob\n{hob} && source <({ASKS}=zsh hob)\n\
             [[ $funcstack[1] == _hob ]] && _clap_dynamic_completer_hob \"$@\"\n"
        ),
        Shell::Fish => format!("{hob}; and {ASKS}=fish hob | source\n"),
        Shell::Elvish => format!("eval (E:{ASKS}=elvish hob | slurp)\n"),
        Shell::PowerShell => format!(
            "$env:{ASKS} = \"powershell\"; hob | Out-String | Invoke-Expression; \
             Remove-Item Env:\\{ASKS}\n"
        ),
        _ => return None,
    })
}
