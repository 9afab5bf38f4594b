# A job of cron's: four variables, no terminal, a session of its own, a pipe to read its output.
job() {
  env -i HOME="$HOME" LOGNAME="$USER" SHELL=/bin/sh PATH=/usr/bin:/bin \
    HOB_DIR="$HOB_DIR" XDG_STATE_HOME="$XDG_STATE_HOME" \
    setsid --wait /bin/sh -c "$HOB run $HELLO" </dev/null 2>&1 | cat >>said
}
often job
records
