#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Looks at reports in one Chromium and says everything that is wrong with them.

usage: browser.py OUT PAGE.html...

Leaves pictures of each page in OUT: light, dark, narrow (PNG), and printed without scripts (PDF).
"""

import base64
import json
import pathlib
import sys
import time

from chromium import Browser

# What is wrong with the page as it is laid out, every closed part opened: text of a chart that is cut or lies on other text, a
# chart whose axis has no unit, a table without a count.
FAULTS = r"""
(() => {
  for (const part of document.querySelectorAll("details")) part.open = true;
  const faults = [];
  const where = (node) => {
    const section = node.closest("section");
    const figure = node.closest("figure");
    const heading = figure?.querySelector("figcaption") ?? section?.querySelector("h2");
    return `${section?.id || section?.querySelector("h2")?.textContent}, ${heading?.textContent}`;
  };
  for (const chart of document.querySelectorAll("svg.chart")) {
    const box = chart.getBoundingClientRect();
    if (box.width === 0) { faults.push(`${where(chart)}: the chart has no size`); continue; }
    const texts = Array.from(chart.querySelectorAll("text")).filter((text) => text.textContent !== "");
    const boxes = texts.map((text) => text.getBoundingClientRect());
    const scale = box.width / chart.viewBox.baseVal.width;
    boxes.forEach((at, index) => {
      const out = Math.max(box.left - at.left, at.right - box.right, box.top - at.top, at.bottom - box.bottom);
      if (out > 1.5 * scale) faults.push(`${where(chart)}: "${texts[index].textContent}" is cut by ${out.toFixed(1)}`);
    });
    const narrow = 2 * scale;
    for (let one = 0; one < boxes.length; one += 1) {
      for (let other = one + 1; other < boxes.length; other += 1) {
        const [a, b] = [boxes[one], boxes[other]];
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > narrow && high > narrow) {
          faults.push(`${where(chart)}: "${texts[one].textContent}" lies on "${texts[other].textContent}"`);
        }
      }
    }
    const titles = Array.from(chart.querySelectorAll(".axis-title"), (title) => title.textContent);
    if (titles.length === 0) faults.push(`${where(chart)}: no axis has a title`);
    const said = titles.some((title) => /, (%|s|ns|µs|ms)\b|, %|number of|\(number\)/.test(title));
    for (const tick of chart.querySelectorAll("text.tick")) {
      // A dash alone says that there is no figure.
      const bare = /^-?[\d.,]+$/.test(tick.textContent);
      if (bare && !said) faults.push(`${where(chart)}: "${tick.textContent}" has no unit; axes: ${titles.join("; ")}`);
    }
  }
  const counts = new Set(["count", "count of blocks", "blocks", "sent", "wake-ups", "transfers", "events", "hand-offs", "lives",
    "rounds", "trials", "runs", "operations"]);
  for (const table of document.querySelectorAll("table:not(.facts)")) {
    const heads = Array.from(table.querySelectorAll("thead th"), (head) => head.textContent);
    const label = table.parentElement.getAttribute("aria-label");
    const told = /[\d,]+ (samples?|wake-ups?|events?|mechanisms?|confirmed)\b/.test(label);
    if (!told && !heads.some((head) => counts.has(head))) faults.push(`table without a count: ${label} | ${heads.join(" | ")}`);
  }
  return faults;
})()
"""


# What is wrong with the tables and charts as they are handled: sorted, searched, told of by a pointer, enlarged.
HANDLED = r"""
(async () => {
  const faults = [];
  const soon = () => new Promise((done) => setTimeout(done, 50));
  const heads = (table) => Array.from(table.tHead.rows[0].cells, (head) => head.textContent);
  const tables = Array.from(document.querySelectorAll("table")).filter((table) => table.tHead);
  const sorted = tables.find((table) => heads(table).includes("p50") && table.tBodies[0].rows.length > 2);
  if (!sorted) return ["no table has a p50 to sort by"];
  const at = heads(sorted).indexOf("p50");
  const column = () => Array.from(sorted.tBodies[0].rows, (row) => parseFloat(row.cells[at].textContent.replaceAll(",", "")))
    .filter((value) => !Number.isNaN(value));
  const head = sorted.tHead.rows[0].cells[at];
  for (const [order, sign] of [["ascending", 1], ["descending", -1]]) {
    head.querySelector("button").click();
    const values = column();
    if (head.getAttribute("aria-sort") !== order || values.some((value, row) => row > 0 && sign * (value - values[row - 1]) < 0)) {
      faults.push(`a click does not sort: ${order}, ${values}`);
    }
  }
  const box = document.querySelector(".find input");
  if (!box && tables.some((table) => table.tBodies[0].rows.length > 8)) faults.push("no table can be searched");
  if (box) {
    const rows = Array.from(box.closest(".find").nextElementSibling.querySelectorAll("tbody tr"));
    const word = rows[0].cells[0].textContent.split(" ")[0].toLowerCase();
    for (const [text, wanted] of [[word, true], [`-${word}`, false]]) {
      box.value = text;
      box.dispatchEvent(new Event("input"));
      const wrong = rows.filter((row) => row.hidden === (row.textContent.toLowerCase().includes(word) === wanted));
      if (wrong.length > 0) faults.push(`a search for "${text}" shows or hides ${wrong.length} rows wrongly`);
    }
    box.value = "";
    box.dispatchEvent(new Event("input"));
    if (rows.some((row) => row.hidden)) faults.push("rows stay hidden after a search");
  }
  const told = document.querySelector("svg.chart title");
  const text = told.textContent;
  told.parentElement.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: 20, clientY: 20 }));
  const tip = document.querySelector(".tip");
  if (tip.hidden || tip.textContent !== text) faults.push(`pointing at "${text}" tells "${tip.textContent}"`);
  document.body.dispatchEvent(new PointerEvent("pointermove", { bubbles: true }));
  if (!tip.hidden || told.textContent !== text) faults.push("pointing elsewhere leaves what was told");
  document.querySelector(".enlarge").click();
  const large = document.querySelector("dialog svg");
  const whole = large.getAttribute("viewBox");
  const key = (key) => large.closest("dialog").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  key("+");
  if (large.getAttribute("viewBox") === whole) faults.push("an enlarged chart does not come nearer");
  key("0");
  if (large.getAttribute("viewBox") !== whole) faults.push("an enlarged chart does not go back to all of it");
  large.closest("dialog").close();
  await soon();
  if (document.querySelector("dialog")) faults.push("an enlarged chart stays");
  return faults;
})()
"""


def look(browser, page, out):
    """Everything that is wrong with a page; its pictures go to `out`."""
    name, address = page.stem, page.resolve().as_uri()
    tab = browser.open(address)
    wrong = browser.complaints()
    if browser.evaluate("document.querySelectorAll('[aria-pressed=true]').length") == 0:
        wrong.append("the script did not run")
    if browser.evaluate("document.querySelector('.harness') === null"):
        wrong.append("the harness's own cost is not on it")
    for scheme in ["light", "dark"]:
        browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        browser.size(1280, 2400)
        browser.picture(out / f"{name}-{scheme}.png")
    if (out / f"{name}-light.png").read_bytes() == (out / f"{name}-dark.png").read_bytes():
        wrong.append("dark looks like light")
    # A link to a variant shows it alone.
    variant = browser.evaluate("document.querySelector('tr[data-variant]')?.dataset.variant ?? ''")
    browser.evaluate(f"location.hash = {json.dumps('#variant=' + variant)}; new Promise((done) => setTimeout(done, 50))")
    alone = browser.evaluate("new Set(Array.from(document.querySelectorAll('tr[data-variant]:not(.off)'), (r) => r.dataset.variant)).size")
    if alone != 1:
        wrong.append(f"a link to {variant} shows {alone} variants")
    browser.evaluate("location.hash = ''; document.querySelector('#tools button').click()")
    for width in [400, 500, 1280]:
        browser.size(width, 2400)
        excess = browser.evaluate("document.documentElement.scrollWidth - innerWidth")
        if excess > 0:
            wrong.append(f"at {width} units the page is {excess} wider than the window")
        if width == 400:
            browser.evaluate("scrollTo(0, 0)")
            browser.picture(out / f"{name}-narrow.png")
    wrong += browser.evaluate(FAULTS)
    wrong += browser.evaluate(HANDLED)
    unpacked = browser.evaluate("""
        (async () => {
          const results = document.getElementById("results");
          if (!results) return "none";
          const bytes = Uint8Array.from(atob(results.textContent), (letter) => letter.charCodeAt(0));
          const text = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
          return JSON.parse(text).length;
        })()""")
    if unpacked == "none" and "too large" not in browser.evaluate("document.getElementById('share').textContent"):
        wrong.append("the results are not in it, and it does not say so")
    browser.close(tab)

    # What a reader has whose browser runs no scripts, on paper.
    tab = browser.open(address, scripts=False)
    if browser.evaluate("document.querySelectorAll('[aria-pressed]').length") != 0:
        wrong.append("scripts ran although they were switched off")
    wrong += browser.complaints()
    printed = browser.ask("Page.printToPDF", printBackground=True)
    (out / f"{name}.pdf").write_bytes(base64.b64decode(printed["data"]))
    browser.close(tab)
    return wrong


def main():
    out, pages = pathlib.Path(sys.argv[1]), [pathlib.Path(page) for page in sys.argv[2:]]
    browser = Browser()
    # A page that breaks its own policy, whose chart has no unit and whose table no count is caught, or this proves nothing.
    broken = out / "broken.html"
    text = pages[0].read_text()
    broken.write_text(text.replace("<main", '<main onclick="x()" style="color:red"', 1)
                      .replace('class="axis-title', 'class="untitled').replace(">count<", ">n<"))
    found = "\n".join(look(browser, broken, out))
    for fault in ["Content Security Policy", "no axis has a title", "table without a count"]:
        if fault not in found:
            raise SystemExit(f"a planted fault went unseen ({fault}): {found[:2000]}")
    bad = False
    for page in pages:
        began = time.monotonic()
        wrong = look(browser, page, out)
        print(f"{page.name}: {len(wrong)} faults, {time.monotonic() - began:.1f} s", flush=True)
        for line in wrong[:40]:
            print(f"  {line}")
        bad |= bool(wrong)
    browser.end()
    sys.exit(bad)


main()
