#!/usr/bin/env bash
# Made `sha1` and `sha256` beside this, with git 2.47.3: tables of refs, and what git says of them.
# $1: a git that knows reftable. The test makes the same commits by the git that is there.
set -euo pipefail
cd "$(dirname "$0")"
git=$1
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
for who in AUTHOR COMMITTER; do
  export "GIT_${who}_NAME=A" "GIT_${who}_EMAIL=a@example.org" "GIT_${who}_DATE=1700000000 +0000"
done
for kind in sha1 sha256; do
  repository=$(mktemp -d)
  run() { "$git" -C "$repository" "$@"; }
  run -c init.defaultBranch=main init -q --bare --ref-format=reftable --object-format=$kind
  # Small blocks: an index of two levels over some hundreds of refs.
  run config reftable.blockSize 256
  run config core.logAllRefUpdates false
  commit() { # its text, its parents
    local blob tree
    blob=$(printf %s "$1" | run hash-object -w --stdin)
    tree=$(printf '100644 blob %s\tf\n' "$blob" | run mktree)
    run commit-tree -m "$1" "${@:2}" "$tree"
  }
  old=$(commit old)
  new=$(commit new -p "$old")
  most=300
  if [[ $kind == sha256 ]]; then most=40; fi
  for number in $(seq $most); do echo "create refs/heads/topic/$number $old"; done |
    run update-ref --stdin
  run tag -a -m tag v1 "$old"
  run update-ref refs/heads/main "$old"
  run pack-refs --all
  # A newer table over the packed one.
  run update-ref refs/heads/main "$new"
  run update-ref -d refs/heads/topic/7
  run symbolic-ref refs/heads/current refs/heads/main
  rm -rf "$kind"
  mkdir "$kind"
  cp "$repository"/reftable/* "$kind"
  run for-each-ref --format='%(refname) %(objectname)' >"$kind/refs"
  rm -rf "$repository"
done
