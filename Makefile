# Strowger: `make run` starts it, `make test` proves it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

PREFIX ?= /usr/local
DESTDIR ?=
SBIN := $(DESTDIR)$(PREFIX)/sbin
# More options for the server: make run ARGS="-vvv"
ARGS ?=
# Seconds for each fuzz target; longer hunts: make fuzz FUZZ_SECONDS=600
FUZZ_SECONDS ?= 3

TARGET := $(or $(CARGO_TARGET_DIR),target)
PROGRAM := $(TARGET)/release/strowger
PYTHON := .venv/bin/python
NODE := .node/node_modules
# Crates that are pure machines; they must build where there is no socket, thread or clock.
PURE := base lanes ilbc speex conf sip stir rtp srtp iax2 odbc codec media dialplan queue call driver apps
# Crates of lanes that build for every processor without a C compiler for it.
LANES := lanes ilbc speex

.PHONY: run build test check bench fuzz install deny clean help build-tools test-tools oracle-tools

help:
	@echo "make run      install what is missing, build the release, start it in the foreground"
	@echo "make build    build the release"
	@echo "make test     install what the tests need and run them all"
	@echo "make check    format, lints, documentation, dependency floors, licences"
	@echo "make bench    measure; results in target/bench/*.json"
	@echo "make fuzz     run every fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS)"
	@echo "make install  install what was built into DESTDIR=$(DESTDIR) PREFIX=$(PREFIX)"

run: build
	exec $(PROGRAM) -f $(ARGS)

build: build-tools
	cargo build --release --locked --package strowger --package strowger-odbc

check: build-tools
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
	cargo xtask tidy
	cargo xtask vectorised
	@if rustup target list --installed 2>/dev/null | grep -q '^wasm32-unknown-unknown$$'; then \
		set -x; cargo check --quiet --locked --target wasm32-unknown-unknown $(addprefix --package ,$(PURE)); \
	else echo "skipped: the pure crates are not built for wasm32 (rustup target add wasm32-unknown-unknown)"; fi
	@if ! rustup target list --installed 2>/dev/null | grep -q '^aarch64-unknown-linux-gnu$$'; then \
		echo "skipped: nothing is built for arm64 (rustup target add aarch64-unknown-linux-gnu)"; \
	elif command -v aarch64-linux-gnu-gcc >/dev/null; then \
		set -x; cargo check --quiet --locked --target aarch64-unknown-linux-gnu --package strowger; \
	else echo "only the crates without C are built for arm64; the rest needs gcc-aarch64-linux-gnu"; \
		set -x; cargo check --quiet --locked --target aarch64-unknown-linux-gnu $(addprefix --package ,$(LANES)); fi

test: test-tools
	cargo xtask test
	cargo xtask reference --third
	$(MAKE) --no-print-directory fuzz

bench: build oracle-tools
	cargo xtask bench

fuzz: build-tools
	cargo xtask fuzz $(FUZZ_SECONDS)

# The same rules as `cargo xtask tidy`, for those who have cargo-deny.
deny:
	cargo deny check licenses bans sources

# As root there may be no Rust, and nothing in the source folder should belong to root: this builds nothing.
install:
	@[[ -x $(PROGRAM) ]] || { echo "$(PROGRAM) is not there: run 'make build' first, as yourself" >&2; exit 1; }
	install -D --mode=0755 $(PROGRAM) $(SBIN)/strowger
	install -D --mode=0755 $(PROGRAM)-odbc $(SBIN)/strowger-odbc
	@if [[ -e $(SBIN)/asterisk && ! -L $(SBIN)/asterisk ]]; then \
		echo "$(SBIN)/asterisk is another program: left alone; scripts that call 'asterisk -rx' reach that one" >&2; \
	else ln --symbolic --force --no-dereference strowger $(SBIN)/asterisk; fi
	sed 's#@SBIN@#$(PREFIX)/sbin#g' packaging/strowger.service.in \
		| install -D --mode=0644 /dev/stdin $(DESTDIR)$(PREFIX)/lib/systemd/system/strowger.service

clean:
	cargo clean

# A C compiler links the program and builds SQLite and (with cmake) libopus; the C++ one builds libFuzzer.
build-tools:
	@.ci/need build-essential cmake
	@command -v cargo >/dev/null || { echo "cargo is missing: install Rust 1.95 or later (https://rustup.rs)" >&2; exit 1; }
	@.ci/need clang || echo "skipped: BPF programs, which clang compiles; media goes through one socket a leg"

# Without the right to install packages the tests that need them say that they are skipped.
test-tools: build-tools oracle-tools $(PYTHON) $(NODE)
	@.ci/need unixodbc odbc-mariadb odbc-postgresql libsqliteodbc || echo "skipped: tests through unixODBC, which is not installed"
	@.ci/need sqlite3 mariadb-server postgresql || echo "skipped: tests with SQLite's shell, MariaDB and PostgreSQL, which are not installed"
	@.ci/need espeak-ng asterisk-core-sounds-en-gsm || echo "skipped: tests with espeak-ng and Debian's prompts, which are not installed"
	@.ci/need sip-tester baresip sipsak linphone-cli iaxmodem tshark tcpdump opus-tools xz-utils iproute2 ethtool openssl fail2ban || echo "skipped: tests with SIPp, baresip, sipsak, linphone, iaxmodem, tshark, opusinfo, openssl and fail2ban, which are not installed"

# C libraries that codecs are compared with.
oracle-tools:
	@.ci/need libgsm1-dev libspandsp-dev libopus-dev libspeex-dev libcodec2-1.0 libbcg729-dev libsrtp2-dev || echo "skipped: comparisons with the C libraries that are not installed"

$(PYTHON): .ci/requirements.txt
	@.ci/need build-essential python3-venv python3-dev
	python3 -m venv .venv
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --requirement .ci/requirements.txt
	@touch $(PYTHON)

# Manager clients for Node; without npm or the network the tests with them say that they are skipped.
$(NODE): .ci/npm.txt
	@if ! { command -v npm >/dev/null || .ci/need nodejs npm; } || ! xargs npm install --silent --no-audit --no-fund --ignore-scripts --prefix .node < .ci/npm.txt; then \
		echo "skipped: manager clients from npm, which are not installed"; fi
	@mkdir -p $(NODE) && touch $(NODE)
