# SPDX-License-Identifier: MIT OR Apache-2.0
# Each target is a line or two; what it does is in the script it names.

.PHONY: run install install-c check test test-all tools soak peers

run:            ## build and run the survey
	cargo run --release

install:        ## the command, its manual pages and completions, under PREFIX
	lab/command/install $(or $(PREFIX),/usr/local)

install-c:      ## the C library, its headers and its pkg-config file, under PREFIX
	library/ffi/install $(or $(PREFIX),/usr/local)

check:          ## for every edit: format, lints, arrows, unit tests of what changed
	ci/check

test:           ## library, lab, C, Python, book: what every change needs; each suite installs what it lacks
	ci/suites test

test-all:       ## these, and the machines, the other systems and the other programs
	ci/suites all

tools:          ## all that any suite needs, from Debian's packages and the registries, ahead of time
	ci/suites folder ci/install

soak: tools     ## what is long by nature: hours of stress, sanitizers, fuzzing
	ci/suites folder ci/soak

peers:          ## install other tools from Debian and compare with them on this machine
	ci/peers
