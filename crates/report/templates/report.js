"use strict";
// Comfort only: everything on the page can be read without this script.
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  const off = new Set();

  const paint = () => {
    for (const node of all("[data-arm]")) node.classList.toggle("off", off.has(node.dataset.arm));
    for (const key of all(".key[role=button]")) key.setAttribute("aria-pressed", String(!off.has(key.dataset.arm)));
    tools.hidden = off.size === 0;
  };

  // Legend entries hide and show their arm in every chart and table.
  const toggle = (arm) => {
    if (!off.delete(arm)) off.add(arm);
    paint();
  };
  for (const key of all(".key")) {
    key.setAttribute("role", "button");
    key.setAttribute("tabindex", "0");
    key.addEventListener("click", () => toggle(key.dataset.arm));
    key.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      toggle(key.dataset.arm);
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
  tools.append(button("Show all arms again", () => { off.clear(); paint(); }));

  // Pointing at a row of a table lifts its arm in the charts; a click makes a link to it.
  const light = (arm, on) => {
    for (const node of all("[data-arm]")) if (node.dataset.arm === arm) node.classList.toggle("lit", on);
  };
  for (const row of all("tr[data-arm]")) {
    row.addEventListener("mouseenter", () => light(row.dataset.arm, true));
    row.addEventListener("mouseleave", () => light(row.dataset.arm, false));
    row.addEventListener("click", () => { location.hash = "arm=" + row.dataset.arm; });
  }

  // #arm=NAME shows one arm alone.
  const follow = () => {
    if (!location.hash.startsWith("#arm=")) return;
    const wanted = location.hash.slice(5);
    const arms = new Set(all("tr[data-arm]").map((row) => row.dataset.arm));
    if (!arms.has(wanted)) return;
    off.clear();
    for (const arm of arms) if (arm !== wanted) off.add(arm);
    paint();
    const row = all("tr[data-arm]").find((candidate) => candidate.dataset.arm === wanted);
    row.scrollIntoView({ block: "center" });
  };
  window.addEventListener("hashchange", follow);
  paint();
  follow();

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
