# SPDX-License-Identifier: MIT OR Apache-2.0
# Each target is a line or two; what it does is in the script it names.

.PHONY: run test install install-c peers study

run:            ## build and run the survey
	cargo run --release

test: install   ## everything CI runs
	ci/run-all ci/test

install:        ## what the tests need, from Debian's packages and crates.io
	ci/run-all ci/install

install-c:      ## the C library, its headers and its pkg-config file, under PREFIX
	crates/ffi/install $(or $(PREFIX),/usr/local)

peers:          ## install other tools from Debian and compare with them on this machine
	ci/peers

study:          ## how often a comparison of two runs is right on this machine
	cargo run --release -- study futex eventfd pipe --gap 0 --placement same-core --rounds 34
