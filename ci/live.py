#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Looks at the live page in Chromium while a run goes on, and attacks it as pages of elsewhere would.

usage: live.py DOORBELL OUT

Leaves pictures in OUT: live-1280-light.png, live-400-dark.png and so on. Judges what is shown, never how soon.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from chromium import PATIENCE_S, Browser

SMUGGLED = "<img src=x onerror=document.title='smuggled'>"

# What is wrong with the page as it is laid out.
FAULTS = r"""
(() => {
  const faults = [];
  const excess = document.documentElement.scrollWidth - innerWidth;
  if (excess > 0) faults.push(`the page is ${excess} wider than the window`);
  for (const chart of document.querySelectorAll(".run svg.chart:not(.key)")) {
    const box = chart.getBoundingClientRect();
    const texts = Array.from(chart.querySelectorAll("text"), (text) => [text.textContent, text.getBoundingClientRect()]);
    if (!texts.some(([text]) => text.endsWith("share of samples"))) faults.push("the chart's axis has no title");
    texts.forEach(([text, at], index) => {
      if (at.left < box.left - 1 || at.right > box.right + 1 || at.bottom > box.bottom + 1) faults.push(`"${text}" is cut`);
      for (const [other, place] of texts.slice(index + 1)) {
        const wide = Math.min(at.right, place.right) - Math.max(at.left, place.left);
        const high = Math.min(at.bottom, place.bottom) - Math.max(at.top, place.top);
        if (wide > 1 && high > 2) faults.push(`"${text}" lies on "${other}"`);
      }
    });
    if (!chart.querySelector("path.line")) faults.push("the chart has no distribution");
  }
  return faults;
})()
"""

COUNT = """Number(document.querySelector(".run tbody td.n")?.textContent.replaceAll(",", "") ?? 0)"""


def until(browser, expression, what):
    """Waits until an expression of the page is true, and gives its value."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        value = browser.evaluate(expression)
        if value:
            return value
        time.sleep(0.1)
    sys.exit(f"live: not so after {PATIENCE_S} s: {what}; the page says: " + browser.evaluate("document.body.innerText"))


def main():
    doorbell, out = sys.argv[1], pathlib.Path(sys.argv[2])
    folder = tempfile.TemporaryDirectory()
    stage = {**os.environ, "XDG_RUNTIME_DIR": folder.name, "XDG_STATE_HOME": folder.name}
    server = subprocess.Popen([doorbell, "top", "--serve", "127.0.0.1:0", "--interval", "100ms"], env=stage,
                              stdout=subprocess.PIPE, text=True)
    run = None
    browser = Browser("--host-resolver-rules=MAP elsewhere.example 127.0.0.1")
    wrong = []
    try:
        address = server.stdout.readline().strip()
        port = address.split(":")[2].split("/")[0]
        run = subprocess.Popen(
            [doorbell, "ping", "futex", "bell-adaptive", "--blocks", "5000", "--time", "20ms", "--quiet", "--name", SMUGGLED,
             "--output", f"{folder.name}/result.json"], env=stage, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        tab = browser.open(address)
        until(browser, "document.getElementById('state').className === 'live'", "the page is live")
        first = until(browser, COUNT, "the run has a distribution")
        until(browser, f"{COUNT} > {first}", "it grows")
        until(browser, "document.querySelectorAll('#waiters tbody tr').length > 0", "the sides of the run wait")
        if SMUGGLED not in browser.evaluate("document.querySelector('.run code').textContent"):
            wrong.append("the run's words are not as they were given")
        if browser.evaluate("document.querySelector('img') !== null || document.title === 'smuggled'"):
            wrong.append("the words of a run became part of the page")
        for width in (400, 1280):
            browser.size(width, 1600)
            for scheme in ("light", "dark"):
                browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
                wrong += [f"at {width}, {scheme}: {fault}" for fault in browser.evaluate(FAULTS)]
                browser.picture(out / f"live-{width}-{scheme}.png")
        if (out / "live-1280-light.png").read_bytes() == (out / "live-1280-dark.png").read_bytes():
            wrong.append("dark looks like light")
        browser.evaluate("document.getElementById('pause').click()")
        held = browser.evaluate(COUNT)
        looks = int(browser.evaluate("document.documentElement.dataset.looks"))
        until(browser, f"Number(document.documentElement.dataset.looks) > {looks + 3}", "looks come while the page is held")
        if browser.evaluate(COUNT) != held:
            wrong.append("a page that is held changes")
        wrong += [told for told in browser.complaints() if told != f"asks for {address}events"]
        # A fault that is planted is found, or the list above proves nothing.
        browser.evaluate("document.querySelector('h1').style.width = '3000px'")
        if not browser.evaluate(FAULTS):
            wrong.append("a planted fault went unseen")

        # A page of elsewhere asks for the looks: it is of no origin here, and must not read them.
        other = browser.open("about:blank")
        read = browser.evaluate(f"fetch({json.dumps(address + 'events')}).then((answer) => answer.status, () => 'refused')")
        if read != "refused":
            wrong.append(f"a page of elsewhere reads the looks: {read}")
        browser.close(other)
        # A name that was pointed here.
        other = browser.open(address.replace("127.0.0.1", "elsewhere.example"))
        if "421" not in browser.evaluate("document.body.innerText"):
            wrong.append("a name of elsewhere is served: " + browser.evaluate("document.body.innerText")[:80])
        browser.close(other)
        other = browser.open(f"http://127.0.0.1:{port}/")
        if "403" not in browser.evaluate("document.body.innerText"):
            wrong.append("who knows no token is served")
        browser.close(other)

        run.terminate()
        run.wait(PATIENCE_S)
        tab = browser.open(address)
        until(browser, "document.documentElement.dataset.looks && document.getElementById('runs').hidden", "a run that ended is gone")
        server.terminate()
        if server.wait(PATIENCE_S) != 0:
            wrong.append(f"the server ended with {server.returncode}")
        until(browser, "document.getElementById('state').className === 'lost'", "the page says that nobody answers")
        browser.close(tab)
    finally:
        for process in (run, server):
            if process and process.poll() is None:
                process.kill()
                process.wait()
        browser.end()
        folder.cleanup()
    for line in wrong:
        print(f"live: {line}")
    sys.exit(bool(wrong))


main()
