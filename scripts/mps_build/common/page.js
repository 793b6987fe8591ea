// Filters the table of all cases by words and by outcome; without scripts the whole table is there.
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
