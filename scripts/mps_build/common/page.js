// Tables sort by a click on a heading, and stand as cards on a phone; the list of all cases filters.
// Without scripts every table is there whole.
(function () {
  document.documentElement.classList.add("js");
  const value = (row, index) => {
    const text = row.cells[index] ? row.cells[index].textContent.trim() : "";
    const number = parseFloat(text.replace(/,/g, ""));
    return Number.isNaN(number) ? text.toLowerCase() : number;
  };
  for (const table of document.querySelectorAll("table")) {
    const heads = Array.from(table.querySelectorAll("thead th"));
    for (const row of table.querySelectorAll("tbody tr")) {
      Array.from(row.cells).forEach((cell, index) => {
        if (heads[index] && cell.textContent.trim()) { cell.dataset.label = heads[index].textContent; }
        else if (!cell.textContent.trim() && !cell.children.length) { cell.classList.add("empty"); }
      });
    }
    if (table.tBodies.length !== 1 || table.tBodies[0].rows.length < 3) { continue; }
    heads.forEach((head, index) => {
      if (!head.textContent) { return; }
      head.classList.add("sorts");
      head.tabIndex = 0;
      const sort = () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((each) => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = Array.from(table.tBodies[0].rows).sort((one, other) => {
          const a = value(one, index), b = value(other, index);
          const order = typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
          return up ? order : -order;
        });
        table.tBodies[0].append(...rows);
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => { if (event.key === "Enter") { sort(); } });
    });
  }
})();
(function () {
  const box = document.getElementById("words"), choice = document.getElementById("outcome"), shown = document.getElementById("shown");
  if (!box) { return; }
  const rows = Array.from(document.querySelectorAll("#cases tbody tr"));
  function filter() {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const fits = words.every((word) => text.includes(word)) && (!choice.value || row.dataset.outcome === choice.value);
      row.hidden = !fits;
      count += fits ? 1 : 0;
    }
    shown.textContent = count + " of " + rows.length;
  }
  box.addEventListener("input", filter);
  choice.addEventListener("change", filter);
  filter();
})();
