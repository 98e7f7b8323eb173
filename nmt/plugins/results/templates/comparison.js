"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  for (const [column, head] of [...table.tHead.rows[0].cells].entries()) {
    if (!head.textContent.trim()) continue;
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.ariaSort !== "descending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.ariaSort = down ? "descending" : "ascending";
      const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const order = (a, b) => (Number(key(a)) - Number(key(b))) || key(a).localeCompare(key(b), "en", { numeric: true });
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort((a, b) => (down ? order(b, a) : order(a, b))));
    });
  }
}
for (const controls of document.querySelectorAll(".controls")) {
  const [words, order] = controls.querySelectorAll("input, select");
  const section = controls.parentElement;
  const lists = section.querySelectorAll(".examples");
  const show = () => {
    let count = 0;
    for (const list of lists) {
      const articles = [...list.querySelectorAll("article")];
      const by = order.value;
      articles.sort((a, b) => by === "line" ? a.dataset.line - b.dataset.line : b.dataset[by] - a.dataset[by]);
      list.append(...articles);
      for (const article of articles) {
        article.hidden = !article.textContent.toLowerCase().includes(words.value.toLowerCase());
        count += article.hidden ? 0 : 1;
      }
    }
    controls.querySelector("output").textContent = count + " lines";
  };
  controls.hidden = false;
  for (const fold of section.querySelectorAll(".examples details")) fold.replaceWith(...fold.querySelectorAll("article"));
  for (const input of [words, order]) input.addEventListener("input", show);
  show();
}
