# A recipe under `make -j`, in a folder of its own as in a bigger project: make's job server is open.
mkdir sub
printf 'all: sub\n.PHONY: sub\nsub:\n\t$(MAKE) -C sub\n' >Makefile
printf 'all: one two\none two:\n\t%s run %s\n.PHONY: all one two\n' "$HOB" "$HELLO" >sub/Makefile
CALLS=$(((CALLS + 1) / 2))
often make -s -j2 >said
records
