"use strict";
// Comfort alone: every square, its words and its link are there without it.
{
  const find = document.querySelector(".find");
  const [box, told] = [find.querySelector("input"), find.querySelector("output")];
  const nodes = [...document.querySelectorAll(".fleet .node")].map((node) => [node, node.textContent.toLowerCase()]);
  find.hidden = false;
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const [node, text] of nodes) {
      const holds = words.every((word) => text.includes(word));
      found += holds;
      node.classList.toggle("dim", !holds);
    }
    told.textContent = words.length ? `${found} of ${nodes.length} nodes` : "";
  });
}
