# Beside a process substitution, whose pipe is open.
reads() {
  "$HOB" run "$HELLO" <(echo more) >>said
}
often reads
records
