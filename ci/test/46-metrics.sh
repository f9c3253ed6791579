#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The recipe of book/queries.md with the real programs: promtool finds nothing to complain of, and the node exporter's textfile collector
# serves every sample of every file; promtool takes those of `top` too.
# Inputs: lab/report/src/export/prometheus.rs lab/report/src/waiter_metrics.rs
# Inputs: lab/command/src/cli/top.rs
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
doorbell=$(ci/built)
ci/install/46-prometheus.sh
tools=$(ci/prometheus)
out=$(mktemp -d)
exporter=
trap '[ -z "$exporter" ] || kill "$exporter" 2>/dev/null; rm -rf "$out"' EXIT
mkdir "$out/textfile"
for name in ping ping-again survey; do
    "$doorbell" export prometheus "lab/command/tests/data/$name.json" -o "$out/textfile/$name.prom"
    "$tools/promtool" check metrics <"$out/textfile/$name.prom" || fail "promtool refuses $name.prom"
done

# scrape: what the collector makes of the folder. Another program may take the port that was free a moment ago.
scrape() {
    local port
    for _ in 1 2 3 4 5; do
        port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
        "$tools/prometheus-node-exporter" --collector.disable-defaults --collector.textfile \
            --collector.textfile.directory="$out/textfile" --web.disable-exporter-metrics \
            --web.listen-address="127.0.0.1:$port" 2>"$out/log" &
        exporter=$!
        while kill -0 "$exporter" 2>/dev/null; do
            if python3 -c 'import sys, urllib.request
print(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics", timeout=60).read().decode(), end="")' "$port" \
                >"$out/scraped" 2>/dev/null; then
                kill "$exporter"
                wait "$exporter" 2>/dev/null || true
                exporter=
                return
            fi
            sleep 0.1
        done
    done
    cat "$out/log" >&2
    fail "the node exporter does not start"
}
samples() { grep -h '^doorbell_' "$@" | grep -o '^[a-z_]*' | sort | uniq -c; }
scrape
grep -q '^node_textfile_scrape_error 0$' "$out/scraped" || { cat "$out/log" >&2; fail "the textfile collector complains"; }
[ "$(samples "$out/textfile/"*.prom)" = "$(samples "$out/scraped")" ] || {
    diff <(samples "$out/textfile/"*.prom) <(samples "$out/scraped") >&2 || true
    fail "the node exporter does not serve every sample"
}
echo "46-metrics: $(grep -c '^doorbell_' "$out/scraped") samples of three results served by the node exporter"

# A file of another format is refused, so that this test can fail.
printf '# TYPE doorbell_run info\ndoorbell_run_info{a="b"} 1\n# EOF\n' >"$out/textfile/ping.prom"
scrape
grep -q '^node_textfile_scrape_error 1$' "$out/scraped" || fail "a file of another format passes: this test proves nothing"

# What `top` says of a program whose waiters are seen.
"$(dirname "$doorbell")/examples/stress" 600 >/dev/null &
waiting=$!
trap 'for each in $exporter $waiting; do kill "$each" 2>/dev/null || true; done; rm -rf "$out"' EXIT
until "$doorbell" top --metrics --pid "$waiting" >"$out/top.prom" && grep -q '^doorbell_waits_total{' "$out/top.prom"; do
    kill -0 "$waiting" || fail "the program ended before its waiters were seen"
    sleep 0.1
done
"$tools/promtool" check metrics <"$out/top.prom" || fail "promtool refuses the metrics of top"
