#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Holds every Cargo.lock of the tree to the security advisories known on the day below; `cargo audit` knows
later ones, and needs its database. A row is a crate, the first version without the fault, and the advisory.
When a crate is added, or a month has passed: read https://rustsec.org/advisories and put the day forward."""
import pathlib
import subprocess
import sys
import tomllib

KNOWN_ON = "2026-08-21"
ADVISORIES = """
anstream 0.6.8 RUSTSEC-2024-0404
anyhow 1.0.103 RUSTSEC-2026-0190
bytes 1.11.1 RUSTSEC-2026-0007
crossbeam-channel 0.5.15 RUSTSEC-2025-0024
event-listener 5.4.2 RUSTSEC-2026-0221
idna 1.0.0 RUSTSEC-2024-0421
memmap2 0.9.11 RUSTSEC-2026-0186
mio 0.8.11 RUSTSEC-2024-0019
pyo3 0.29.0 RUSTSEC-2026-0177
rand 0.9.3 RUSTSEC-2026-0097
shlex 1.3.0 RUSTSEC-2024-0006
slab 0.4.11 RUSTSEC-2025-0047
spin 0.9.8 RUSTSEC-2023-0031
tokio 1.44.2 RUSTSEC-2025-0023
tracing-subscriber 0.3.20 RUSTSEC-2025-0055
tungstenite 0.20.1 RUSTSEC-2023-0065
zerocopy 0.7.31 RUSTSEC-2023-0074
zerovec 0.10.4 RUSTSEC-2024-0347
zlib-rs 0.4.0 RUSTSEC-2024-0401
"""


def number(version):
    return tuple(int(part) for part in version.split("+")[0].split("-")[0].split("."))


def faults(name, package, rows):
    """What is wrong with one package of the lock `name`."""
    source = package.get("source", "")
    if source and source != "registry+https://github.com/rust-lang/crates.io-index":
        yield f"{name}: {package['name']} comes from {source}, not from crates.io"
    for crate, fixed, advisory in rows:
        if package["name"] == crate and number(package["version"]) < number(fixed):
            yield f"{name}: {crate} {package['version']}: {advisory}, fixed in {fixed}"


rows = [row.split() for row in ADVISORIES.strip().splitlines()]
locks = subprocess.check_output(["git", "ls-files", "*Cargo.lock"], text=True).split()
# The check can fail: a version that is known to be at fault is found.
assert list(faults("planted", {"name": "shlex", "version": "1.2.9"}, rows))
found = [
    fault
    for lock in locks
    for package in tomllib.loads(pathlib.Path(lock).read_text())["package"]
    for fault in faults(lock, package, rows)
]
print(*found, sep="\n", end="\n" if found else "")
print(f"advisories: {len(locks)} locks held to {len(rows)} advisories of {KNOWN_ON}: {len(found)} faults")
sys.exit(bool(found))
