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

  // #variant=NAME shows one variant alone.
  const follow = () => {
    if (!location.hash.startsWith("#variant=")) return;
    const wanted = location.hash.slice("#variant=".length);
    const variants = new Set(all("tr[data-variant]").map((row) => row.dataset.variant));
    if (!variants.has(wanted)) return;
    off.clear();
    for (const variant of variants) if (variant !== wanted) off.add(variant);
    paint();
    const row = all("tr[data-variant]").find((candidate) => candidate.dataset.variant === wanted);
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
