#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Slurm, munge and sshd, with the libraries that this machine lacks, into the folder that ci/fleet-tools names.
set -euo pipefail
# What is installed is for all to read and for nobody else to write.
umask 022
cd "$(dirname "$0")/../.."
[ "$(id -u)" -eq 0 ] || { echo "not root: no cluster of two nodes" >&2; exit 0; }
home=$(ci/fleet-tools)
[ -e "$home/complete" ] && exit 0
ci/install/debian iproute2 openssh-client
apt-get -qq update
home=$(ci/fleet-tools)
rm -rf "$home"
mkdir -p "$home/packages/partial"
# shellcheck disable=SC2046
apt-get -qq -o APT::Sandbox::User= -o DPkg::Lock::Timeout=300 -o "Dir::Cache::archives=$home/packages" --download-only --no-install-recommends \
    install -y $(ci/fleet-tools packages)
for package in "$home"/packages/*.deb; do dpkg-deb -x "$package" "$home"; done
# The names that Debian's alternatives give them.
for name in slurmctld slurmd slurmstepd; do ln -s "$name-wlm" "$home/usr/sbin/$name"; done
rm -rf "$home/packages"
touch "$home/complete"
