#!/bin/sh
# What action.yml runs: takes a release's files, lets install.sh compare them with their digests and
# install them below the runner's own folder, and names that folder to the job's next steps.
#
# From the environment: HOB_FROM, HOB_SHA256 and HOB_SHIMS, the action's inputs; GITHUB_PATH and
# RUNNER_TEMP, which every runner sets. It starts nothing.
set -eu
export LC_ALL=C
fail() { printf '::error title=hob::%s\n' "$*"; exit 1; }

get() {
  case $HOB_FROM in
    https://*)
      curl --silent --show-error --fail --location --proto =https --retry 3 \
        --output "$1" "$HOB_FROM/$1" || fail "$HOB_FROM/$1 cannot be had" ;;
    /*) cp "$HOB_FROM/$1" "$1" || fail "$HOB_FROM has no $1" ;;
    *) fail "from is neither an https address nor the path of a folder: $HOB_FROM" ;;
  esac
}

files=$(mktemp -d "${RUNNER_TEMP:?}/hob-XXXXXX")
trap 'rm -rf "$files"' EXIT
cd "$files"
get SHA256SUMS
if [ -n "$HOB_SHA256" ]; then
  echo "$HOB_SHA256  SHA256SUMS" | sha256sum -c - >/dev/null 2>&1 ||
    fail "SHA256SUMS is not the file that sha256 names"
fi
tarball=$(sed -n "s/^[0-9a-f]*  \(hob-[^ ]*-$(uname -m)-linux\.tar\.gz\)$/\1/p" SHA256SUMS)
[ -n "$tarball" ] || fail "SHA256SUMS names no tarball for $(uname -m)"
get "$tarball"
get install.sh
grep -F '  install.sh' SHA256SUMS | sha256sum -c - >/dev/null 2>&1 ||
  fail "install.sh is not what SHA256SUMS says"
PREFIX=$RUNNER_TEMP/hob sh install.sh || fail "install.sh failed: its line is above"
echo "$RUNNER_TEMP/hob/bin" >>"${GITHUB_PATH:?}"
if [ -n "$HOB_SHIMS" ]; then
  set -f
  # One word for each command.
  # shellcheck disable=SC2086
  "$RUNNER_TEMP/hob/bin/hob" shim add $HOB_SHIMS || fail "a shim cannot be made: the line above says why"
  echo "${XDG_DATA_HOME:-$HOME/.local/share}/hob/shims" >>"$GITHUB_PATH"
fi
