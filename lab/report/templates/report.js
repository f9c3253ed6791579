"use strict";
// Comfort only: everything on the page can be read without this script.
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  const off = new Set();

  const paint = () => {
    for (const node of all("[data-variant]")) node.classList.toggle("off", off.has(node.dataset.variant));
    for (const key of all(".key[role=button]")) key.setAttribute("aria-pressed", String(!off.has(key.dataset.variant)));
    tools.hidden = off.size === 0;
  };

  // Legend entries hide and show their variant in every chart and table.
  const toggle = (variant) => {
    if (!off.delete(variant)) off.add(variant);
    paint();
  };
  for (const key of all(".key")) {
    key.setAttribute("role", "button");
    key.setAttribute("tabindex", "0");
    key.addEventListener("click", () => toggle(key.dataset.variant));
    key.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      toggle(key.dataset.variant);
    });
  }

  const tools = document.getElementById("tools");
  const button = (text, act) => {
    const node = document.createElement("button");
    node.type = "button";
    node.textContent = text;
    node.addEventListener("click", () => act(node));
    return node;
  };
  tools.append(button("Show all variants again", () => { off.clear(); paint(); }));

  // Pointing at a row of a table lifts its variant in the charts; a click makes a link to it.
  const light = (variant, on) => {
    for (const node of all("[data-variant]")) if (node.dataset.variant === variant) node.classList.toggle("lit", on);
  };
  for (const row of all("tr[data-variant]")) {
    row.addEventListener("mouseenter", () => light(row.dataset.variant, true));
    row.addEventListener("mouseleave", () => light(row.dataset.variant, false));
    row.addEventListener("click", () => { location.hash = "variant=" + row.dataset.variant; });
  }

  // What a link leads to is opened, and #variant=NAME shows one variant alone.
  const open = (node) => {
    for (let up = node; up; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
    node?.scrollIntoView({ block: node.tagName === "TR" ? "center" : "start" });
  };
  const follow = () => {
    if (location.hash.length > 1 && !location.hash.startsWith("#variant=")) {
      open(document.getElementById(decodeURIComponent(location.hash.slice(1))));
      return;
    }
    if (!location.hash.startsWith("#variant=")) return;
    const wanted = location.hash.slice("#variant=".length);
    const variants = new Set(all("tr[data-variant]").map((row) => row.dataset.variant));
    if (!variants.has(wanted)) return;
    off.clear();
    for (const variant of variants) if (variant !== wanted) off.add(variant);
    paint();
    const row = all("tr[data-variant]").find((candidate) => candidate.dataset.variant === wanted);
    open(row);
  };
  window.addEventListener("hashchange", follow);
  paint();
  follow();

  // Tables: a head sorts by its column, and where rows are many, words find some of them.
  const UNITS = { ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 };
  const value = (text) => {
    const found = /^[^\d+\-−.]*([+\-−]?[\d,]*\.?\d+)(?:\s*(ns|µs|ms|s|min|h)\b)?/.exec(text);
    return found ? Number(found[1].replaceAll(",", "").replace("−", "-")) * (UNITS[found[2]] ?? 1) : NaN;
  };
  const cell = (row, column) => row.cells[column]?.textContent ?? "";
  const sort = (table, head, column) => {
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => head.classList.contains("n") ? value(cell(row, column)) : cell(row, column);
    const before = (a, b) => {
      if (typeof a === "string") return (down ? -1 : 1) * a.localeCompare(b, "en", { numeric: true });
      // What has no figure stays last.
      if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
      return down ? b - a : a - b;
    };
    const rows = Array.from(table.tBodies[0].rows, (row) => [key(row), row]);
    table.tBodies[0].append(...rows.sort((a, b) => before(a[0], b[0])).map(([, row]) => row));
  };
  // "futex -epoll p99<10": rows with the first word, without the second, with less than 10 in the column p99.
  const condition = (word, heads) => {
    const found = /^(.+?)(<=|>=|<|>)(.+)$/.exec(word);
    const column = found ? heads.findIndex((head) => head.includes(found[1])) : -1;
    const limit = found ? value(found[3]) : NaN;
    if (column >= 0 && !Number.isNaN(limit)) {
      const holds = { "<": (a) => a < limit, ">": (a) => a > limit, "<=": (a) => a <= limit, ">=": (a) => a >= limit };
      return (row) => holds[found[2]](value(cell(row, column)));
    }
    const without = word.length > 1 && word.startsWith("-");
    const wanted = without ? word.slice(1) : word;
    return (row) => row.textContent.toLowerCase().includes(wanted) !== without;
  };
  const MANY_ROWS = 8;
  const finder = (table) => {
    const rows = Array.from(table.tBodies[0].rows);
    const heads = Array.from(table.tHead.rows[0].cells, (head) => head.textContent.toLowerCase());
    const box = document.createElement("input");
    const told = document.createElement("output");
    const line = document.createElement("p");
    const numbers = heads.filter((head, at) => at > 0 && head && table.tHead.rows[0].cells[at].classList.contains("n"));
    const figure = numbers.find((head) => head.endsWith("p50")) ?? numbers[0];
    box.type = "search";
    box.placeholder = figure ? `find rows: word -word ${figure.split(" ").pop()}<10` : "find rows: word -word";
    box.setAttribute("aria-label", "Find rows");
    line.className = "find";
    line.append(box, told);
    table.parentElement.before(line);
    box.addEventListener("input", () => {
      const holds = box.value.toLowerCase().split(/\s+/).filter(Boolean).map((word) => condition(word, heads));
      for (const row of rows) row.hidden = !holds.every((one) => one(row));
      told.textContent = holds.length ? `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows` : "";
    });
  };
  for (const table of all("table")) {
    if (!table.tHead || table.tBodies[0].rows.length < 2) continue;
    Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
      const by = button(head.textContent, () => sort(table, head, column));
      head.replaceChildren(by);
    });
    if (table.tBodies[0].rows.length > MANY_ROWS) finder(table);
  }

  // Charts: what is under the pointer is told beside it at once, and a chart can fill the window and be looked into.
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  let told = null;
  const silent = () => {
    if (told) told.title.textContent = told.text;
    told = null;
    tip.hidden = true;
  };
  const tell = (event) => {
    let node = event.target.closest?.("svg.chart *");
    while (node && !node.querySelector(":scope > title")) node = node.parentElement?.closest("svg.chart *");
    const title = node?.querySelector(":scope > title");
    if (!title) { silent(); return; }
    if (told?.title !== title) {
      silent();
      // The browser would tell the same a second later.
      told = { title, text: title.textContent };
      title.textContent = "";
      tip.textContent = told.text;
    }
    (event.target.closest("dialog") ?? document.body).append(tip);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const [left, top] = [event.clientX + 14, event.clientY + 18];
    tip.style.left = `${Math.max(4, Math.min(left, innerWidth - box.width - 8))}px`;
    tip.style.top = `${top + box.height > innerHeight ? Math.max(4, event.clientY - box.height - 12) : top}px`;
  };
  document.addEventListener("pointermove", tell);
  document.addEventListener("pointerdown", tell);
  document.addEventListener("scroll", silent, true);

  const enlarge = (chart) => {
    silent();
    const shown = chart.cloneNode(true);
    const { width, height } = chart.viewBox.baseVal;
    const window_ = document.createElement("dialog");
    const view = { x: 0, y: 0, size: 1 };
    const look = () => shown.setAttribute("viewBox", `${view.x} ${view.y} ${width * view.size} ${height * view.size}`);
    // Nearer or farther, what is at the place (in parts of the view) staying there.
    const zoom = (by, across = 0.5, down = 0.5) => {
      const size = Math.min(1, Math.max(0.02, view.size * by));
      view.x += width * (view.size - size) * across;
      view.y += height * (view.size - size) * down;
      view.size = size;
      if (size === 1) view.x = view.y = 0;
      look();
    };
    const move = (across, down) => { view.x += across; view.y += down; look(); };
    const bar = document.createElement("p");
    const close = () => { silent(); window_.close(); window_.remove(); };
    bar.append(button("Nearer (+)", () => zoom(0.7)), button("Farther (-)", () => zoom(1 / 0.7)),
      button("All of it (0)", () => zoom(100)), button("Close (Esc)", close));
    window_.className = "large";
    window_.setAttribute("aria-label", chart.getAttribute("aria-label"));
    window_.append(bar, shown);
    shown.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = shown.getBoundingClientRect();
      zoom(event.deltaY < 0 ? 0.85 : 1 / 0.85, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
    }, { passive: false });
    shown.addEventListener("pointermove", (event) => {
      if (event.buttons !== 1) return;
      const part = width * view.size / shown.getBoundingClientRect().width;
      move(-event.movementX * part, -event.movementY * part);
    });
    window_.addEventListener("keydown", (event) => {
      const step = 0.1 * view.size;
      const keys = {
        "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1 / 0.7), "0": () => zoom(100),
        ArrowLeft: () => move(-width * step, 0), ArrowRight: () => move(width * step, 0),
        ArrowUp: () => move(0, -height * step), ArrowDown: () => move(0, height * step),
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    window_.addEventListener("close", close);
    document.body.append(window_);
    window_.showModal();
  };
  for (const chart of all("svg.chart")) {
    const by = button("Enlarge", () => enlarge(chart));
    by.className = "enlarge";
    by.setAttribute("aria-label", `Enlarge: ${chart.getAttribute("aria-label")}`);
    chart.parentElement.before(by);
  }

  // Copying: what stands in a box, and the results themselves, which are packed.
  const copy = async (text, node) => {
    if (!navigator.clipboard) { node.textContent = "Select the text to copy it"; return; }
    try {
      await navigator.clipboard.writeText(await text());
      node.textContent = "Copied";
    } catch { node.textContent = "Not allowed"; }
  };
  for (const box of all("pre")) box.after(button("Copy", (node) => copy(() => box.textContent, node)));
  const results = document.getElementById("results");
  const unpacked = () => {
    const bytes = Uint8Array.from(atob(results.textContent), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };
  if (results && "DecompressionStream" in window) {
    document.getElementById("share").append(button("Copy the results as JSON", (node) => copy(unpacked, node)));
  }

  // On paper everything is open.
  window.addEventListener("beforeprint", () => { for (const node of all("details")) node.open = true; });
})();
