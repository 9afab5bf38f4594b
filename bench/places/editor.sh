# The terminal of an editor, as VS Code makes it: its descriptors and its variables are there.
export TERM_PROGRAM=vscode TERM_PROGRAM_VERSION=1.99.0 COLORTERM=truecolor
export VSCODE_IPC_HOOK_CLI="$PLACE/vscode-ipc.sock" VSCODE_INJECTION=1
export VSCODE_GIT_ASKPASS_NODE=/usr/bin/node GIT_ASKPASS="$PLACE/askpass.sh"
mkfifo pipe
{
  for ((n = 0; n < CALLS; n++)); do
    printf '%q run %q\n' "$HOB" "$HELLO"
    sleep "$GAP"
  done
  echo exit
} | SHELL=$(command -v bash) script -qec 'exec 19>/dev/null 20</dev/zero 21>>log 103<>pipe; exec bash --norc --noprofile -i' \
  /dev/null >said
records
