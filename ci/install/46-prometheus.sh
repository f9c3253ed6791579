#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Prometheus, promtool and the node exporter, into the folder that ci/prometheus names: three programs out of two packages.
set -euo pipefail
# What is installed is for all to read and for nobody else to write.
umask 022
cd "$(dirname "$0")/../.."
home=$(ci/prometheus)
[ -x "$home/prometheus" ] && exit 0
case $home in
    *[0-9]*) ;;
    *) # This machine has no lists of packages yet.
        if [ "$(id -u)" -eq 0 ]; then apt-get -qq update; else sudo apt-get -qq update; fi
        home=$(ci/prometheus)
        ;;
esac
fetched=$(mktemp -d)
trap 'rm -rf "$fetched"' EXIT
(cd "$fetched" && apt-get -qq -o APT::Sandbox::User= download prometheus prometheus-node-exporter)
for package in "$fetched"/*.deb; do dpkg-deb -x "$package" "$fetched"; done
mkdir -p "$home"
mv "$fetched"/usr/bin/{promtool,prometheus-node-exporter,prometheus} "$home/"
