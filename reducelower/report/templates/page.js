"use strict";
for (const element of document.querySelectorAll(".filter, .buttons")) element.hidden = false;

for (const form of document.querySelectorAll(".filter")) {
  const rows = [...document.getElementById(form.dataset.table).tBodies[0].rows];
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const search = form.querySelector("input[type=search]");
  const boxes = [...form.querySelectorAll("input[type=checkbox]")];
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fates = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    let shown = 0;
    rows.forEach((row) => {
      const keep = fates.has(row.dataset.fate) && words.every((word) => texts.get(row).includes(word));
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

for (const table of document.querySelectorAll(".sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.tabIndex = 0;
    const sort = () => {
      const up = head.classList.contains("sorted") && !head.classList.contains("up");
      for (const other of heads) other.classList.remove("sorted", "up");
      head.classList.add("sorted");
      head.classList.toggle("up", up);
      const rows = [...table.tBodies[0].rows];
      const text = (row) => row.cells[column].textContent;
      rows.sort((left, right) => text(left).localeCompare(text(right), undefined, { numeric: true }) * (up ? -1 : 1));
      table.tBodies[0].append(...rows);
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter") sort();
    });
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
