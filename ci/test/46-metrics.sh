#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The recipe of book/queries.md with the real programs: promtool finds nothing to complain of, and the node exporter's textfile collector
# serves every sample of every file. The recipe of book/top.md too: a real Prometheus scrapes the live page by it.
# Inputs: crates/report/src/export/openmetrics.rs crates/report/src/export/prometheus.rs
# Inputs: crates/lab/src/cli/top crates/lab/src/cli/top.rs
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
    "$doorbell" export prometheus "crates/lab/tests/data/$name.json" -o "$out/textfile/$name.prom"
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

# What was published for it before is not taken, so that this test can fail.
"$doorbell" export openmetrics crates/lab/tests/data/ping.json -o "$out/textfile/ping.prom"
scrape
grep -q '^node_textfile_scrape_error 1$' "$out/scraped" || fail "a file of another format passes: this test proves nothing"

# The recipe of book/top.md, as it stands there but for the port and the token's folder: promtool finds it right, and a real Prometheus scrapes the page.
sed -n '/^```yaml$/,/^```$/{/^```/d;p}' book/top.md >"$out/recipe.yml"
grep -q 'token .*# what --token-file wrote' "$out/recipe.yml" && grep -q 127.0.0.1:8080 "$out/recipe.yml" || fail "book/top.md has another recipe"
"$doorbell" top --serve 127.0.0.1:0 --token-file "$out/doorbell.token" >"$out/address" &
served=$!
# A program whose waiters are seen.
"$(dirname "$doorbell")/examples/stress" 600 >/dev/null &
waiting=$!
prometheus=
trap 'for each in $exporter $served $waiting $prometheus; do kill "$each" 2>/dev/null || true; done; rm -rf "$out"' EXIT
until [ -s "$out/address" ]; do
    kill -0 "$served" || fail "the page is not served"
    sleep 0.1
done
page=$(cat "$out/address")
sed "s|/etc/prometheus/|$out/|; s|127.0.0.1:8080|$(cut -d/ -f3 <<<"$page")|; s|^scrape_configs:|global: { scrape_interval: 200ms }\n&|" "$out/recipe.yml" >"$out/prometheus.yml"
"$tools/promtool" check config "$out/prometheus.yml" || fail "promtool refuses the recipe of book/top.md"
sed 's/credentials_file/credential_file/' "$out/prometheus.yml" >"$out/wrong.yml"
! "$tools/promtool" check config "$out/wrong.yml" 2>/dev/null || fail "a word that Prometheus does not know is not refused: this test proves nothing"
# Another program may take the port before Prometheus does.
for _ in 1 2 3 4 5; do
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    "$tools/prometheus" --config.file="$out/prometheus.yml" --storage.tsdb.path="$out/tsdb" --web.listen-address="127.0.0.1:$port" 2>"$out/log" &
    prometheus=$!
    while kill -0 "$prometheus" 2>/dev/null; do
        ! grep -q 'Server is ready to receive web requests' "$out/log" || break 2
        sleep 0.1
    done
done
kill -0 "$prometheus" 2>/dev/null || { cat "$out/log" >&2; fail "Prometheus does not start"; }
python3 - "$port" "$page" <<'PY' || { cat "$out/log" >&2; fail "Prometheus has no samples of the page"; }
import json, sys, time, urllib.request

def fetched(url):
    return urllib.request.urlopen(url, timeout=60).read().decode()

deadline = time.monotonic() + 300
while time.monotonic() < deadline:
    try:
        answer = json.loads(fetched(f"http://127.0.0.1:{sys.argv[1]}/api/v1/query?query=doorbell_waits_total%7Bcommand=%22stress%22%7D"))["data"]["result"]
    except OSError:
        answer = []
    if answer:
        print(f"46-metrics: Prometheus scraped the page: {len(answer)} series of doorbell_waits_total")
        sys.exit(0)
    time.sleep(0.2)
sys.exit(1)
PY
python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1] + "metrics").read().decode(), end="")' "$page" >"$out/page.prom"
"$tools/promtool" check metrics <"$out/page.prom" || fail "promtool refuses the page's metrics"
