#!/bin/sh
# Installs hob for one user, without root, from the tarball beside this file; or removes it.
#
#   sh install.sh             into ~/.local (another folder: PREFIX=/opt/hob sh install.sh)
#   sh install.sh --remove    takes every file away that it has installed there
#
# It compares the tarball with SHA256SUMS, reads no network, writes below PREFIX only, and starts
# nothing. The list of what it wrote is PREFIX/share/doc/hob/installed.
set -eu
export LC_ALL=C
prefix=${PREFIX:-${HOME:?set HOME or PREFIX}/.local}
list=share/doc/hob/installed
fail() { printf 'install: %s\n' "$*" >&2; exit 1; }

# Removes the files of a list, and the folders that are empty then.
remove() {
  while IFS= read -r path; do
    rm -f "$prefix/$path"
    folder=$(dirname "$path")
    while [ "$folder" != . ] && rmdir "$prefix/$folder" 2>/dev/null; do folder=$(dirname "$folder"); done
  done
}

case ${1-} in
  '') ;;
  --remove)
    [ -f "$prefix/$list" ] || fail "$prefix has no hob of this script's"
    if [ -x "$prefix/bin/hob" ]; then "$prefix/bin/hob" stop >/dev/null 2>&1 || :; fi
    files=$(cat "$prefix/$list")
    printf '%s\n' "$files" | remove
    echo "hob is removed from $prefix"
    exit ;;
  *) fail "usage: sh install.sh [--remove]" ;;
esac

cd "$(dirname "$0")"
tarball=$(ls hob-*-"$(uname -m)"-linux.tar.gz 2>/dev/null) || fail "no tarball for $(uname -m) lies beside me"
[ "$(printf '%s\n' "$tarball" | wc -l)" -eq 1 ] || fail "more than one tarball lies beside me"
grep -F "  $tarball" SHA256SUMS | sha256sum -c - >/dev/null 2>&1 ||
  fail "$tarball is not what SHA256SUMS says: get both again"

# Unpacked beside its place, so that each file is exchanged at once and a running hob goes on.
mkdir -p "$prefix" || fail "$prefix cannot be written: choose another folder with PREFIX"
new=$(mktemp -d "$prefix/.hob-XXXXXX") || fail "$prefix cannot be written: choose another folder with PREFIX"
trap 'rm -rf "$new"' EXIT
tar -xzf "$tarball" -C "$new" --strip-components=1
(cd "$new" && : >$list && find . -type f | sed 's|^\./||' | sort >$list)
# What an older hob had, and this one has not.
if [ -f "$prefix/$list" ]; then sort "$prefix/$list" | comm -23 - "$new/$list" | remove; fi
while IFS= read -r path; do
  mkdir -p "$prefix/$(dirname "$path")"
  mv -f "$new/$path" "$prefix/$path"
done <"$new/$list"
echo "hob is installed: $prefix/bin/hob"
case :$PATH: in *":$prefix/bin:"*) ;; *) echo "add it to your PATH: export PATH=\"$prefix/bin:\$PATH\"" ;; esac
echo "remove it: PREFIX='$prefix' sh '$prefix/share/doc/hob/install.sh' --remove"
