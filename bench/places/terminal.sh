# An interactive shell in a terminal.
{
  for ((n = 0; n < CALLS; n++)); do
    printf '%q run %q\n' "$HOB" "$HELLO"
    sleep "$GAP"
  done
  echo exit
} | script -qec 'bash --norc --noprofile -i' /dev/null >said
records
