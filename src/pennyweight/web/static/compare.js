// Compare and other pages with choices: a choice applies at once, and long lists can be searched.
"use strict";

for (const choice of all("[data-submits]")) {
  choice.addEventListener("change", () => {
    // other columns have other sides
    if (choice.name === "by") for (const side of all("[name=a], [name=b]", choice.form)) side.disabled = true;
    choice.form.requestSubmit();
  });
}

// What tells the sides of some runs apart says nothing about others: they begin with the default.
const runs = all("form.comparing input[name=run]");
for (const run of runs) {
  run.addEventListener("change", () => {
    const others = runs.some((box) => box.checked !== box.defaultChecked);
    for (const choice of all("[data-submits]")) choice.disabled = others;
  });
}

for (const finder of all("[data-finder]")) {
  const box = finder.closest("details");
  const rows = all("[data-found]", box);
  finder.addEventListener("input", () => {
    const words = finder.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const row of rows) {
      const text = `${row.dataset.found} ${row.textContent}`.toLowerCase();
      row.hidden = !one("input", row).checked && !words.every((word) => text.includes(word));
      found += row.hidden ? 0 : 1;
    }
    one("[data-none]", box).hidden = found > 0 || !rows.length;
  });
}
