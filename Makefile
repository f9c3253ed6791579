# SPDX-License-Identifier: MIT OR Apache-2.0
# Each target is a line or two; what it does is in the script it names.

.PHONY: run test install

run:            ## build and run the survey
	cargo run --release

test: install   ## everything CI runs
	ci/run-all ci/test

install:        ## what the tests need, from Debian's packages and crates.io
	ci/run-all ci/install
