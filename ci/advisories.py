#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Holds what every Cargo.lock of the tree takes from others to the security advisories known on the day below, to licences that go
with ours, to crates.io as the only source, and to what was taken back there (yanked), as far as Cargo's own copy of the index tells.
A row is a crate, the first version without the fault, and the advisory. When a crate is added, or a month has passed: read
https://rustsec.org/advisories and put the day forward. Where `cargo audit` is installed and can reach its database it is asked too."""
import json
import os
import pathlib
import re
import shutil
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


HOME = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
# Under any one of them a crate may be part of what is MIT or Apache-2.0.
LICENCES = {
    "MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "0BSD", "BSL-1.0", "CC0-1.0",
    "MIT-0", "Unicode-3.0", "Unicode-DFS-2016", "Unlicense", "MPL-2.0",
}


def fits(expression):
    """Whether a licence expression (SPDX; `/` is an old OR) leaves one that fits."""
    words = re.findall(r"[()]|[^\s()/]+|/", expression)
    place = 0

    def one():
        nonlocal place
        word = words[place]
        place += 1
        if word == "(":
            inner = either()
            place += 1
            return inner
        if words[place : place + 1] == ["WITH"]:
            word, place = f"{word} WITH {words[place + 1]}", place + 2
        return word in LICENCES

    def both():
        nonlocal place
        left = one()
        while words[place : place + 1] == ["AND"]:
            place += 1
            left = one() and left
        return left

    def either():
        nonlocal place
        left = both()
        while words[place : place + 1] in (["OR"], ["/"]):
            place += 1
            left = both() or left
        return left

    return either()


def index(crate):
    """What Cargo's copy of the registry's index says of each version of a crate: whether it was taken back."""
    folder = f"{crate[:2]}/{crate[2:4]}" if len(crate) > 3 else f"3/{crate[0]}" if len(crate) == 3 else str(len(crate))
    told = {}
    for copy in HOME.glob(f"registry/index/*/.cache/{folder}/{crate}"):
        for line in copy.read_bytes().split(b"\0"):
            if line.startswith(b"{"):
                version = json.loads(line)
                told[version["vers"]] = version["yanked"]
    return told


def licence(crate, version):
    """The licence that a crate which Cargo has here names; none of one that it has not, as those of other systems."""
    for manifest in HOME.glob(f"registry/src/*/{crate}-{version}/Cargo.toml"):
        return tomllib.loads(manifest.read_text())["package"].get("license", "no expression")
    return None


rows = [row.split() for row in ADVISORIES.strip().splitlines()]
locks = subprocess.check_output(["git", "ls-files", "*Cargo.lock"], text=True).split()
packages = [(lock, package) for lock in locks for package in tomllib.loads(pathlib.Path(lock).read_text())["package"]]
# The check can fail: what is known to be at fault is found.
assert list(faults("planted", {"name": "shlex", "version": "1.2.9"}, rows))
assert fits("(MIT OR Apache-2.0) AND Unicode-3.0") and fits("MIT/GPL-3.0") and not fits("MIT AND GPL-3.0")
found = [fault for lock, package in packages for fault in faults(lock, package, rows)]
asked = {(package["name"], package["version"]) for _, package in packages if package.get("source")}
named = {(crate, version): licence(crate, version) for crate, version in asked}
found += [f"{crate} {version}: licence {text}" for (crate, version), text in sorted(named.items()) if text and not fits(text)]
told = {crate: index(crate) for crate, _ in asked}
found += [f"{crate} {version} was taken back (yanked)" for crate, version in sorted(asked) if told[crate].get(version)]
without = sum(text is None for text in named.values())
unknown = sum(version not in told[crate] for crate, version in asked)
if shutil.which("cargo-audit"):
    for lock in locks:
        audit = subprocess.run(["cargo", "audit", "--quiet", "--file", lock], capture_output=True, text=True)
        found += [f"{lock}: {audit.stdout}"] if audit.returncode == 1 and "error: couldn't" not in audit.stderr else []
print(*found, sep="\n", end="\n" if found else "")
print(
    f"advisories: {len(locks)} locks, {len(asked)} crates held to {len(rows)} advisories of {KNOWN_ON}, to licences ({without} crates are "
    f"not here) and to what was taken back ({unknown} are not in the index here): {len(found)} faults"
)
sys.exit(bool(found))
