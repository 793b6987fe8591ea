// Tables sort by a click on a heading; a long one filters, a tall one is folded, and on a phone its rows are cards.
// Without scripts every table is there whole.
(function () {
  const LONG = 25, LEAST = 4, SCREENS = 0.9;
  document.documentElement.classList.add("js");
  const value = (row, index) => {
    const text = row.cells[index] ? row.cells[index].textContent.trim() : "";
    const number = parseFloat(text.replace(/,/g, ""));
    return Number.isNaN(number) ? text.toLowerCase() : number;
  };
  const made = (name, given) => Object.assign(document.createElement(name), given);

  function name_cells(heads, rows) {
    for (const row of rows) {
      Array.from(row.cells).forEach((cell, index) => {
        const label = heads[index] ? heads[index].textContent.trim() : "";
        if (!cell.textContent.trim() && !cell.children.length) { cell.classList.add("empty"); }
        else if (label && cell.textContent.trim()) { cell.dataset.label = label; }
      });
    }
  }

  function sortable(table, heads, changed) {
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
        changed();
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => { if (event.key === "Enter") { sort(); } });
    });
  }

  // As many rows as fit on a screen, so that a page of several tables can be read from top to bottom.
  function few(rows) {
    let tall = 0, count = 0;
    for (const row of rows.slice(0, LONG)) {
      tall += row.offsetHeight;
      if (count >= LEAST && tall > SCREENS * innerHeight) { break; }
      count += 1;
    }
    return count + 2 >= rows.length ? rows.length : count;
  }

  function foldable(table, rows) {
    const frame = table.closest(".wide") || table;
    const words = made("input", { type: "search", placeholder: "filter by words", ariaLabel: "filter by words" });
    const choice = made("select", { ariaLabel: "outcome" }), shown = made("span", {});
    const most = few(rows), opener = made("button", { type: "button", textContent: `show all ${rows.length}` });
    let is_open = most === rows.length;
    const texts = new Map();
    const update = () => {
      const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean), filtered = wanted.length || choice.value;
      let fitting = 0;
      for (const row of table.tBodies[0].rows) {
        if (wanted.length && !texts.has(row)) { texts.set(row, row.textContent.toLowerCase()); }
        const fits = wanted.every((word) => texts.get(row).includes(word)) && (!choice.value || row.dataset.outcome === choice.value);
        fitting += fits ? 1 : 0;
        row.hidden = !fits;
        row.classList.toggle("folded", !filtered && !is_open && fitting > most);
      }
      shown.textContent = filtered ? `${fitting} of ${rows.length}` : is_open ? `all ${rows.length}` : `${most} of ${rows.length}`;
      opener.hidden = is_open || Boolean(filtered);
    };
    if (rows.length > LONG) {
      const tools = made("div", { className: "tools" });
      tools.append(words);
      const outcomes = new Map(rows.filter((row) => row.dataset.outcome).map((row) => [row.dataset.outcome, row.querySelector(".tag").textContent]));
      if (outcomes.size > 1) {
        choice.append(made("option", { value: "", textContent: "every outcome" }));
        for (const [key, text] of outcomes) { choice.append(made("option", { value: key, textContent: text })); }
        tools.append(choice);
      }
      tools.append(shown);
      frame.before(tools);
      words.addEventListener("input", update);
      choice.addEventListener("change", update);
    }
    opener.addEventListener("click", () => { is_open = true; update(); });
    frame.after(opener);
    update();
    return update;
  }

  for (const table of document.querySelectorAll("table")) {
    if (table.tBodies.length !== 1) { continue; }
    const heads = Array.from(table.querySelectorAll("thead th")), rows = Array.from(table.tBodies[0].rows);
    name_cells(heads, rows);
    const changed = rows.length > LEAST ? foldable(table, rows) : () => {};
    if (rows.length > 2) { sortable(table, heads, changed); }
  }
})();
