"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const SVG = "http" + "://www.w3.org/2000/svg";
  // Names of processes are anybody's: they become text, never markup.
  const make = (name, text, cls) => {
    const node = document.createElement(name);
    if (text !== undefined) node.textContent = text;
    if (cls) node.className = cls;
    return node;
  };
  const draw = (name, attributes) => {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return node;
  };
  const whole = (number) => number.toLocaleString("en");
  const rate = (number) => (number === null ? "-" : number < 10 ? number.toFixed(1) : whole(Math.round(number)));

  // The last minute of a row, by what tells the row from others.
  const KEPT = 60;
  let past = new Map();
  const remember = (key, value, now) => {
    const values = (past.get(key) ?? []).concat(value === null ? [] : [value]).slice(-KEPT);
    now.set(key, values);
    return values;
  };
  const spark = (values, label) => {
    const picture = draw("svg", { class: "spark", viewBox: "0 0 120 22", role: "img", "aria-label": label, preserveAspectRatio: "none" });
    const most = Math.max(...values, 1e-9);
    const points = values.map((value, index) => `${(index * 118 / (KEPT - 1) + 1).toFixed(1)} ${(20 - 18 * value / most).toFixed(1)}`);
    if (points.length > 1) picture.append(draw("path", { d: "M" + points.join("L") }));
    return picture;
  };
  const cell = (row, content, cls) => {
    const node = make("td", undefined, cls);
    node.append(content);
    row.append(node);
    return node;
  };
  const head = (text) => {
    const node = make("th", text);
    node.scope = "row";
    return node;
  };

  const waiters = (look, now) => look.waiters.map((waiter) => {
    const row = make("tr");
    const values = remember(`w ${waiter.pid} ${waiter.command} ${waiter.waiter}`, waiter.waits_per_s, now);
    row.append(head(`${waiter.command} ${waiter.pid}`));
    cell(row, waiter.waiter, "w");
    cell(row, waiter.does, waiter.does === "spins in vain" ? "w vain" : "w");
    cell(row, rate(waiter.waits_per_s), "n");
    cell(row, spark(values, "waits a second in the last minute"));
    for (const name of ["spun_and_hit", "spun_in_vain", "slept", "woken"]) cell(row, whole(waiter[name]), "n");
    return row;
  });
  const processes = (look, now) => look.processes.map((process) => {
    const row = make("tr");
    const values = remember(`p ${process.pid} ${process.command}`, process.late_share, now);
    row.append(head(`${process.command} ${process.pid}`));
    cell(row, process.late_share === null ? "-" : `${(process.late_share * 100).toFixed(2)} %`, "n");
    cell(row, spark(values, "lateness in the last minute"));
    cell(row, process.why || "-", "w why");
    cell(row, process.assumes, "w");
    return row;
  });

  // Bars are places on a logarithmic axis: so many a doubling, from 1 ps.
  const units = [[1e12, "s"], [1e9, "ms"], [1e6, "µs"], [1e3, "ns"], [1, "ps"]];
  const ticked = (ps) => {
    const [size, unit] = units.find(([size]) => ps >= size * 0.999) ?? [1, "ps"];
    return `${Number((ps / size).toPrecision(2))} ${unit}`;
  };
  const WIDE = 760, HIGH = 240, LEFT = 60, RIGHT = 28, TOP = 12, FOOT = 40, COLOURS = 8;
  // What came last stands first; once all have come, each keeps its place and its colour.
  const newest = (run) => run.configurations.slice().reverse();
  const chart = (run) => {
    const drawn = newest(run).slice(0, COLOURS);
    const all = drawn.flatMap((one) => one.shape.map(([bar]) => bar));
    const low = Math.min(...all) - 1, high = Math.max(...all) + 2;
    const x = (bar) => LEFT + (bar - low) * (WIDE - LEFT - RIGHT) / (high - low);
    const floor = HIGH - FOOT;
    const most = Math.max(...drawn.flatMap((one) => one.shape.map(([, count]) => count / one.count)));
    // The logarithm shows one in a hundred thousand beside the rest.
    const y = (share) => (share <= 0 ? floor : floor - (floor - TOP) * Math.max(0, Math.log10(share / most) + 5) / 5);
    const picture = draw("svg", { class: "chart", viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img",
      "aria-label": `distribution of ${drawn.map((one) => one.label).join(", ")}` });
    for (let decade = 0; decade <= 5; decade += 1) {
      const height = y(most / 10 ** decade);
      picture.append(draw("line", { class: "grid", x1: LEFT, x2: WIDE - RIGHT, y1: height, y2: height }));
      if (decade === 5) continue;
      const text = draw("text", { class: "tick end", x: LEFT - 4, y: height + 4 });
      const percent = most * 100 / 10 ** decade;
      text.textContent = `${Number(percent.toPrecision(1))} %`;
      picture.append(text);
    }
    let last = -Infinity;
    for (let power = 0; power <= 16; power += 1) {
      const place = x(power * Math.log2(10) * run.bars);
      if (place < LEFT || place > WIDE - RIGHT) continue;
      picture.append(draw("line", { class: "grid", x1: place, x2: place, y1: TOP, y2: floor }));
      if (place - last < 50) continue;
      last = place;
      const text = draw("text", { class: "tick middle", x: place, y: floor + 15 });
      text.textContent = ticked(10 ** power);
      picture.append(text);
    }
    const title = draw("text", { class: "axis-title middle", x: (LEFT + WIDE - RIGHT) / 2, y: HIGH - 6 });
    title.textContent = `${[...new Set(drawn.map((one) => one.quantity))].join(", ")}, share of samples`;
    picture.append(title);
    drawn.forEach((one, colour) => {
      let path = "", before = null;
      for (const [bar, count] of one.shape) {
        if (before === null || bar !== before + 1) path += (before === null ? "M" : `V${floor}M`) + `${x(bar).toFixed(1)} ${floor}`;
        path += `V${y(count / one.count).toFixed(1)}H${x(bar + 1).toFixed(1)}`;
        before = bar;
      }
      picture.append(draw("path", { class: `line c${colour}`, d: `${path}V${floor}` }));
    });
    return picture;
  };
  const key = (colour) => {
    const picture = draw("svg", { class: "chart key", viewBox: "0 0 26 10", "aria-hidden": "true" });
    picture.append(draw("path", { class: `line c${colour}`, d: "M0 5H26" }));
    return picture;
  };
  const progress = (run) => {
    const box = make("div", undefined, "run");
    const words = make("p", undefined, "lead");
    words.append(make("code", run.command), ` · process ${run.pid} · ${whole(run.done)} of at most ${whole(run.trials)} trials ended`);
    if (run.without_figures > 0) words.append(`, ${whole(run.without_figures)} without figures`);
    if (run.more > 0) words.append(` · ${whole(run.more)} more configurations are not shown`);
    const bar = make("progress");
    bar.max = run.trials;
    bar.value = run.done;
    bar.setAttribute("aria-label", "trials that ended");
    box.append(words, bar);
    if (run.configurations.length === 0) return box;
    box.append(chart(run));
    const scroll = make("div", undefined, "scroll");
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "what was seen so far");
    const table = make("table"), top = make("tr"), body = make("tbody"), heads = make("thead");
    for (const name of ["", "configuration", "quantity", "count", "p50", "p90", "p99", "p99.9", "longest", "in trial", "what interfered with that"]) {
      const one = make("th", name);
      one.scope = "col";
      top.append(one);
    }
    heads.append(top);
    newest(run).forEach((one, index) => {
      const row = make("tr");
      cell(row, index < COLOURS ? key(index) : "");
      row.append(head(one.label || run.experiment));
      cell(row, one.quantity, "w").title = one.about;
      cell(row, whole(one.count), "n");
      for (const time of one.times) cell(row, time, "n");
      cell(row, whole(one.longest_in), "n");
      cell(row, one.why || "nothing that was seen", "w why");
      body.append(row);
    });
    table.append(heads, body);
    scroll.append(table);
    box.append(scroll);
    return box;
  };

  const show = (look) => {
    const now = new Map();
    at("waiters").tBodies[0].replaceChildren(...waiters(look, now));
    at("processes").tBodies[0].replaceChildren(...processes(look, now));
    past = now;
    at("nobody").hidden = look.waiters.length > 0;
    at("closed").hidden = look.closed === 0;
    at("closed").textContent = `${whole(look.closed)} processes may not be looked into: other users', or protected from tracing. `
      + "Root, or who has CAP_SYS_PTRACE, sees them.";
    at("runs").hidden = look.runs.length === 0;
    const places = Array.from(document.querySelectorAll("#each-run .scroll"), (box) => box.scrollLeft);
    at("each-run").replaceChildren(...look.runs.map(progress));
    document.querySelectorAll("#each-run .scroll").forEach((box, index) => { box.scrollLeft = places[index] ?? 0; });
  };

  const state = at("state"), pause = at("pause");
  let looks = 0, held = false, waiting = null;
  const say = (cls, text) => { state.className = cls; state.textContent = text; };
  pause.addEventListener("click", () => {
    held = !held;
    pause.setAttribute("aria-pressed", String(held));
    pause.textContent = held ? "Go on" : "Pause";
    if (held) say("held", "held");
    else if (waiting) show(waiting);
  });
  const source = new EventSource("events");
  source.addEventListener("message", (event) => {
    const look = JSON.parse(event.data);
    looks += 1;
    document.documentElement.dataset.looks = String(looks);
    waiting = look;
    if (held) return;
    if (state.className !== "live") say("live", "live");
    show(look);
  });
  source.addEventListener("error", () => say("lost", "no connection; trying again"));
})();
