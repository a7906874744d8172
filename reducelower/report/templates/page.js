"use strict";
for (const element of document.querySelectorAll(".filter, .buttons")) element.hidden = false;

for (const form of document.querySelectorAll(".filter")) {
  const rows = [...document.getElementById(form.dataset.table).tBodies[0].rows];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const search = form.querySelector("input[type=search]");
  const boxes = [...form.querySelectorAll("input[type=checkbox]")];
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fates = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    let shown = 0;
    rows.forEach((row, at) => {
      const keep = fates.has(row.dataset.fate) && words.every((word) => texts[at].includes(word));
      row.hidden = !keep;
      shown += keep;
    });
    form.querySelector("output").textContent = `${shown} of ${rows.length} shown`;
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  apply();
}

for (const button of document.querySelectorAll("[data-open], [data-close]")) {
  const opens = "open" in button.dataset;
  button.addEventListener("click", () => {
    const section = document.getElementById(opens ? button.dataset.open : button.dataset.close);
    for (const details of section.querySelectorAll("details.rewrite")) details.open = opens;
  });
}

// A link to a model or a rewrite opens it, and what it is in.
const follow = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) {
    for (let details = target; details; details = details.parentElement.closest("details")) details.open = true;
    target.scrollIntoView();
    target.querySelector("summary").focus({ preventScroll: true });
  }
};
addEventListener("hashchange", follow);
follow();
