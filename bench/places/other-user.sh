# As another user, by what `sudo -u` does: its ids, its home, and sudo's own variables.
PATH=$PATH:/usr/sbin:/sbin
user=$(id -un 65534)
chown 65534 "$PLACE"
mkdir -m 755 home state
chown 65534 home state
cat >as.sh <<'P'
. "$LIB"
often "$HOB" run "$HELLO" >said
records
"$HOB" stop >/dev/null
P
touch "$OUT"
chown 65534 "$OUT"
runuser -u "$user" -- env -i PATH=/usr/local/bin:/usr/bin:/bin TERM=dumb LC_ALL=C.UTF-8 \
  HOME="$PLACE/home" USER="$user" LOGNAME="$user" SHELL=/bin/sh MAIL="/var/mail/$user" \
  SUDO_COMMAND="$HOB run $HELLO" SUDO_USER=root SUDO_UID=0 SUDO_GID=0 \
  HOB_DIR="$PLACE/run" XDG_STATE_HOME="$PLACE/state" \
  LIB="$LIB" HOB="$HOB" HELLO="$HELLO" CALLS="$CALLS" GAP="$GAP" PLACE="$PLACE" OUT="$OUT" \
  bash as.sh
