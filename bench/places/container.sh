# A container: namespaces of its own, and neither /run/user nor a place that hob was told.
cat >inside.sh <<'P'
mount --bind "$PLACE" /mnt
mount -t tmpfs tmpfs /tmp
mkdir -p "$PLACE"
mount --move /mnt "$PLACE"
mount -t tmpfs tmpfs /run
unset HOB_DIR XDG_RUNTIME_DIR
export XDG_STATE_HOME="$PLACE/state"
. "$LIB"
often "$HOB" run "$HELLO" >said
records
"$HOB" stop >/dev/null
P
cp "$HOB" hob
cp "$HELLO" hello.py
cp "$LIB" lib.sh
HOB="$PLACE/hob" HELLO="$PLACE/hello.py" LIB="$PLACE/lib.sh" OUT="$PLACE/records" \
  unshare --mount --pid --ipc --uts --fork --mount-proc bash inside.sh
cp records "$OUT"
