# What people and CI call. Each target works from a clean clone, installs what it needs, and says
# what it is doing. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# A fresh HOME (a container's, a test's) does not hide a toolchain that lies beside cargo.
ifeq ($(wildcard $(or $(RUSTUP_HOME),$(HOME)/.rustup)/toolchains/*),)
  CARGO_ROOT := $(abspath $(dir $(realpath $(shell command -v cargo)))/../..)
  ifneq ($(wildcard $(CARGO_ROOT)/.rustup),)
    export RUSTUP_HOME := $(CARGO_ROOT)/.rustup
  endif
endif

# What is built lies where the targets below say.
unexport CARGO_TARGET_DIR
ARCH := $(shell uname -m)
TRIPLE := $(ARCH)-unknown-linux-musl
# `make dist ARCH=aarch64` builds for another machine, with its C compiler, which links too.
ifneq ($(ARCH),$(shell uname -m))
  export CC_$(ARCH)_unknown_linux_musl := $(ARCH)-linux-gnu-gcc
  export CARGO_TARGET_$(shell echo $(ARCH) | tr a-z A-Z)_UNKNOWN_LINUX_MUSL_LINKER := $(ARCH)-linux-gnu-gcc
endif
# The one release binary; target/hob is a link to it.
HOB := $(CURDIR)/target/$(TRIPLE)/release/hob
# What tests run.
QUICK := $(CURDIR)/target/quick/hob
# What `hob --version` says besides the version: the commit, and whether files were changed since.
COMMIT = $(shell git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null)
# Tests run with every check on, and optimised where they spend their time (Cargo.toml).
PROFILE := --profile quick
# Everything is built in one shape: a package by itself would have other features of what it depends
# on, and all of that would be compiled again.
WHOLE := --locked --workspace --features xtask/cli,hob-actor/tokio
# nextest runs the tests (.config/nextest.toml): each in a process of its own, with its time, and a
# report in target/nextest. It knows no examples in docs: cargo runs these. Where it cannot be had,
# cargo runs all.
TOOLS := $(CURDIR)/target/tools/bin
NEXTEST = $(TOOLS)/cargo-nextest nextest run --cargo-profile quick --no-tests pass $(WHOLE)
# Whole-system tests wait as often as they work.
AT_A_TIME := $(shell expr $$(nproc) \* 2)
UNITS = if [[ -x $(TOOLS)/cargo-nextest ]]; then $(NEXTEST) -E 'not package(hob-tests)' $(1) && \
	  cargo test --doc --exclude hob-tests $(WHOLE) $(PROFILE) $(1); \
	else cargo test --exclude hob-tests $(WHOLE) $(PROFILE) $(1); fi
# $(call SYSTEM,BINARY,WHICH,ARGUMENTS): WHICH is an expression of nextest's.
SYSTEM = if [[ -x $(TOOLS)/cargo-nextest ]]; then HOB_BIN=$(1) $(NEXTEST) --test-threads $(AT_A_TIME) -E 'package(hob-tests)$(2)' $(3); \
	else HOB_BIN=$(1) cargo test --locked --package hob-tests $(PROFILE) $(3); fi
# Those whole-system tests that find most for their time: a call, its world, its end, what is stale.
MOST := and test(/^(cli::(bytes|jobs|lifecycle|receipts)|fallback::(beyond|daemon)|fidelity::(context|imports|world)|hooks::semantics|messages::ends|ruby::scripts|serve::apps|sessions::scripts|verbs::heals)::/)
# Those in which the release build may differ from the quick one: another C library, no checks.
RELEASED := and test(/^(cli|fallback|verbs)::/) and not test(/refused/)
BENCH = cargo run --locked --quiet $(PROFILE) --package hob-bench -- --hob $(HOB)
BENCHES := hello throughput commands pandas ahead soak receipts why messages restarts stale chaos same worlds moments orders ends outbox nats actors hooks ruby jvm http places edits ab
RUFF := target/tools/bin/ruff
FUZZ_SECONDS ?= 600
CHAOS_ROUNDS ?= 10000
# Where `make install` puts what `make build` made. DESTDIR goes before, for packagers.
PREFIX ?= /usr/local
DESTDIR ?=
INSTALLED = $(DESTDIR)$(PREFIX)
GENERATED = target/generated
DIST = target/dist$(if $(filter $(shell uname -m),$(ARCH)),,-$(ARCH))
XTASK = target/quick/xtask
STEP = bash .ci/timed

.PHONY: help
help: ## Lists the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16
	@echo "bench-NAME      Measures one figure: $(BENCHES)."

.PHONY: deps
deps: ## Installs what builds need (apt, rustup; a JDK among it), where it is missing.
	@bash .ci/deps $(TRIPLE)

.PHONY: test-deps
test-deps: ## Installs what tests need beside that: a browser, Maven, husky and lefthook.
	@bash .ci/deps $(TRIPLE) tests

.PHONY: bench-deps
bench-deps: ## Installs what `make bench-http` and `make bench-ab` measure beside.
	@bash .ci/deps $(TRIPLE) bench

.PHONY: build
build: binary generated ## Builds the release binary, target/hob, with man pages and completions.
	@ls -lL $(HOB)

# The binary alone: what measures and shows it needs no man pages.
.PHONY: binary
binary: deps
	HOB_COMMIT="$(COMMIT)" cargo build --locked --release --target $(TRIPLE) --package hob
	@if [[ $(ARCH) == $$(uname -m) ]]; then ln -sfn $(TRIPLE)/release/hob target/hob; fi

# It builds nothing, so that it can be run by root.
.PHONY: install
install: ## Installs what `make build` made (PREFIX=/usr/local, DESTDIR=).
	@test -x $(HOB) || { echo "nothing to install yet: run make build first" >&2; exit 1; }
	install -D -m 755 $(HOB) $(INSTALLED)/bin/hob
	install -d $(INSTALLED)/share/man/man1
	install -m 644 $(GENERATED)/man/*.1 $(INSTALLED)/share/man/man1
	install -D -m 644 $(GENERATED)/completions/hob.bash $(INSTALLED)/share/bash-completion/completions/hob
	install -D -m 644 $(GENERATED)/completions/_hob $(INSTALLED)/share/zsh/site-functions/_hob
	install -D -m 644 $(GENERATED)/completions/hob.fish $(INSTALLED)/share/fish/vendor_completions.d/hob.fish

.PHONY: uninstall
uninstall: ## Removes what `make install` installed.
	rm -f $(INSTALLED)/bin/hob $(INSTALLED)/share/man/man1/hob.1 $(INSTALLED)/share/man/man1/hob-*.1
	rm -f $(INSTALLED)/share/bash-completion/completions/hob $(INSTALLED)/share/zsh/site-functions/_hob
	rm -f $(INSTALLED)/share/fish/vendor_completions.d/hob.fish

.PHONY: dist
dist: build ## Packs what `make build` made, in target/dist: tarball, wheel, npm, deb, rpm, licences, digests.
	@bash .ci/deps $(TRIPLE) dist
	$(XTASK) dist $(HOB) $(GENERATED) $(DIST)

.PHONY: packages
packages: dist ## Installs and removes each package in a root of its own, by its own tool.
	bash .ci/packages $(HOB) $(GENERATED) $(DIST)

.PHONY: cross
cross: ## Builds hob for ARM64 without the release's link time, and calls it under qemu.
	bash .ci/cross aarch64

# With what is there, if something is: nobody waits long for a build to see what it does. What is built
# is what tests run, in the shape that they have it.
.PHONY: demo
demo: ## Shows three real commands, cold and warm, and a receipt (HOB_BIN=, or hob on PATH, or a quick build).
	@hob=$${HOB_BIN:-$$(command -v hob || true)}; \
	if [[ $$hob ]]; then echo "demo: with $$hob" >&2; \
	elif [[ -x $(HOB) ]]; then hob=$(HOB); echo "demo: with $$hob, which was built before" >&2; \
	else hob=$(QUICK); \
	  echo "demo: builds hob as its tests have it, with every check on (some three minutes); what ships is faster" >&2; \
	  $(MAKE) deps; CARGO_INCREMENTAL=0 cargo build $(WHOLE) $(PROFILE) --bin hob; fi; \
	python3 bench/demo.py "$$hob"

.PHONY: check
check: deps tools ## Format, lints, tidy, licences and advisories, docs.
	cargo fmt --all --check
	@$(STEP) "lints" cargo clippy $(WHOLE) --all-targets $(PROFILE) -- -D warnings
	$(RUFF) check
	$(RUFF) check --config ruff.toml "$$(python3 runtimes/python/join.py)"
	@$(STEP) "dependencies" bash .ci/deny
	@$(STEP) "quick build" $(MAKE) generated
	$(XTASK) tidy
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" $(STEP) "docs of Rust" \
	  cargo doc $(WHOLE) --no-deps --document-private-items $(PROFILE)

.PHONY: docs
docs: ## Makes the documents a site, target/site, and follows each link of it.
	bash .ci/docs

# Tools of others, in an environment of their own: nothing is installed outside target/.
.PHONY: tools
tools:
	bash .ci/tools

.PHONY: quick
quick: deps ## The quick build: what tests run, chores, and all else that they are built on.
	cargo build $(WHOLE) $(PROFILE)

.PHONY: test
test: test-deps tools ## All tests, in one Python, one Ruby and the JVMs (35 minutes, with all builds).
	@bash .ci/test most $(QUICK)

.PHONY: test-quick
test-quick: deps tools ## Units, simulation, runtimes, and the whole-system tests that find most.
	@bash .ci/test quick $(QUICK)

.PHONY: test-rest
test-rest: test-deps tools ## Each other Python, suites of others, another machine, the release build and packages.
	@bash .ci/test rest $(QUICK)

.PHONY: test-all
test-all: ## Everything: make test, then make test-rest.
	@$(MAKE) test
	@$(MAKE) test-rest

.PHONY: units
units: tools ## Tests of each crate, the simulation, and the examples in docs.
	@$(call UNITS)

.PHONY: system
system: quick test-deps tools ## Whole-system tests.
	@$(call SYSTEM,$(QUICK))

.PHONY: system-quick
system-quick: quick tools
	@$(call SYSTEM,$(QUICK), $(MOST))

.PHONY: system-release
system-release: binary test-deps tools ## Those whole-system tests in which the release build may differ.
	@$(call SYSTEM,$(HOB), $(RELEASED))

.PHONY: suites
suites: quick ## Suites that others wrote, against `hob serve`; tests/suites lists where it differs.
	bash .ci/suites $(QUICK)

.PHONY: runtimes
runtimes: ## Tests of what lives inside interpreters, in those that this machine has.
	bash .ci/runtimes

.PHONY: one
one: deps tools ## Runs the tests whose names contain T (make one T=name; P=hob-core: only this crate's).
	@test -n "$(T)" || { echo "say which: make one T=name" >&2; exit 2; }
ifeq ($(P),)
	cargo build $(WHOLE) $(PROFILE)
	@$(call UNITS,-- $(T))
	@$(call SYSTEM,$(QUICK),,-- $(T))
else
	$(if $(filter hob-tests,$(P)),cargo build $(WHOLE) $(PROFILE) --bin hob)
	@if [[ -x $(TOOLS)/cargo-nextest ]]; then run="$(TOOLS)/cargo-nextest nextest run --cargo-profile quick"; \
	else run="cargo test $(PROFILE)"; fi; HOB_BIN=$(QUICK) $$run --locked --package $(P) -- $(T)
endif

.PHONY: bench
bench: binary ## Measures every figure, one after the other (some ten minutes; quiet machine).
	$(BENCH) all

.PHONY: $(addprefix bench-,$(BENCHES))
$(addprefix bench-,$(BENCHES)): bench-%: binary
	$(BENCH) $(if $(ONLY),--only $(ONLY)) $*

# Its peers come from a JVM; its commands from packages.
bench-hooks bench-ruby bench-jvm: test-deps

.PHONY: chaos
chaos: binary ## Ten thousand faults of chance: none lost, wrong, hung or left (HOB_CHAOS_SEED=1).
	HOB_CHAOS_SEED=$${HOB_CHAOS_SEED:-1} $(BENCH) --rounds $(CHAOS_ROUNDS) --only faults chaos

.PHONY: readme
readme: ## Renders the README's table from bench/results.json.
	$(BENCH) readme

.PHONY: headline
headline: binary test-deps ## Measures what the README's table has (ten minutes once all is built; quiet machine).
	@bash .ci/deps $(TRIPLE) headline
	$(BENCH) headline

.PHONY: results
results: headline ## Measures that and makes it what the README shows.
	cp target/bench/headline.json bench/results.json
	$(BENCH) readme

.PHONY: fuzz
fuzz: ## Fuzzes the decoders of frames and bencode, and names of git, with libFuzzer (nightly Rust; FUZZ_SECONDS=600).
	cargo +nightly fuzz run frames fuzz/corpus/frames runtimes/golden -- \
	  -max_total_time=$(FUZZ_SECONDS) -max_len=4096
	cargo +nightly fuzz run bencode fuzz/corpus/bencode -- \
	  -max_total_time=$(FUZZ_SECONDS) -max_len=4096
	cargo +nightly fuzz run names fuzz/corpus/names -- \
	  -max_total_time=$(FUZZ_SECONDS) -max_len=1100

.PHONY: mutants
mutants: ## Finds policy that no test would miss (cargo-mutants on hob-core and hob-wire).
	command -v cargo-mutants >/dev/null || cargo install --locked cargo-mutants
	cargo mutants --package hob-core --package hob-wire --output target/mutants

.PHONY: generated
generated: quick ## Writes man pages and shell completions to target/generated.
	@rm -rf $(GENERATED)
	$(XTASK) man $(GENERATED)/man
	$(XTASK) completions $(GENERATED)/completions

.PHONY: clean
clean: ## Removes everything that was built or measured.
	cargo clean
