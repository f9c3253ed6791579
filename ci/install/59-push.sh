#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The client of Socket.IO as npm has it, one file, into target/push. Nothing of it is run by node, and no script of its package either.
set -euo pipefail
# What is installed is for all to read and for nobody else to write.
umask 022
cd "$(dirname "$0")/../.."
version=4.8.4
[ -s "target/push/socket.io-client-$version/socket.io.min.js" ] && exit 0
command -v npm >/dev/null || ci/install/debian npm
mkdir -p target/push
part=$(mktemp -d -p target/push)
trap 'rm -rf "$part"' EXIT
(cd "$part" && npm pack --silent --ignore-scripts "socket.io-client@$version" >/dev/null && tar xzf "socket.io-client-$version.tgz")
mkdir -p "target/push/socket.io-client-$version"
mv "$part/package/dist/socket.io.min.js" "target/push/socket.io-client-$version/"
