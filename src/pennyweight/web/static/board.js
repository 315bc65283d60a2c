// The leaderboard: links and choices exchange one part of the page; names are searched as you type.
"use strict";

// What was chosen of the board and of the grid stays when the other changes.
const OF_GRID = ["rows", "only"];
let { wanted = "", unfolded = false } = history.state ?? {}; // Back leads to the board as it was left
const remember = (changed) => history.replaceState({ ...history.state, ...changed }, "");

function addresses(url, name) {
  const [asked, shown] = [new URL(url, location), new URL(location)];
  if (name === "board") {
    const kept = OF_GRID.filter((key) => shown.searchParams.has(key) && !asked.searchParams.has(key));
    for (const key of kept) asked.searchParams.set(key, shown.searchParams.get(key));
    return [asked, asked];
  }
  if (asked.pathname === location.pathname) return [asked, asked];
  for (const key of OF_GRID) {  // the grid on the page of the run
    const value = asked.searchParams.get(key);
    if (value) shown.searchParams.set(key, value);
    else shown.searchParams.delete(key);
  }
  shown.hash = "";
  return [asked, shown];
}

async function swap(url, name, keep = true) {
  const part = one(`[data-part="${name}"]`);
  if (!part) return location.assign(url);
  part.setAttribute("aria-busy", "true");
  try {
    const [asked, shown] = keep ? addresses(url, name) : [url, url];
    const answer = await fetch(asked);
    if (!answer.ok) throw new Error(answer.status);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const other = one(`[data-part="${name}"]`, fresh);
    const focus = document.activeElement?.getAttribute("href");
    const chooser = document.activeElement?.matches("[data-board] select");
    const place = one(".scroll", part)?.scrollLeft;
    part.replaceWith(document.adoptNode(other));
    const said = name === "board" && one(".conclusion", fresh);
    if (said) one(".conclusion")?.replaceWith(document.adoptNode(said));
    if (place && one(".scroll", other)) one(".scroll", other).scrollLeft = place;
    if (name === "board") all('[data-part="grid"]', fresh).forEach((grid) => one('[data-part="grid"]')?.replaceWith(document.adoptNode(grid)));
    const { grid, cell, ...state } = history.state ?? {};
    const kept = name === "board" ? { grid, cell } : {}; // another order of tasks begins at the top
    if (keep) history.pushState({ ...state, ...kept, part: name }, "", shown);
    document.dispatchEvent(new Event("pennyweight:parts"));
    const again = focus && all("a", other).find((a) => a.getAttribute("href") === focus);
    (again || one(chooser ? "[data-board] select" : ".scroll", other))?.focus({ preventScroll: true });
  } catch {
    location.assign(url);
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-swap]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  if ("unfold" in link.dataset) {
    unfolded = true;
    remember({ unfolded });
    narrow();
    one(".scroll.board")?.focus({ preventScroll: true });
    return;
  }
  swap(link.href, link.dataset.swap);
});

addEventListener("popstate", () => swap(location.href, one('[data-part="board"]') ? "board" : "grid", false));

// Show the sides whose names are searched for; else those that are not folded.
function narrow() {
  const rows = all("table.board tbody tr[data-name]");
  if (!rows.length) return;
  const [table, words] = [one("table.board"), wanted.split(/\s+/)];
  for (const row of rows) {
    const folded = "folded" in row.dataset && !unfolded;
    row.hidden = wanted ? !words.every((word) => row.dataset.name.includes(word)) : folded;
  }
  for (const row of all("tr.cut", table)) row.hidden = Boolean(wanted) || ("folded" in row.dataset && !unfolded);
  one("[data-none]", table)?.remove();
  const shown = rows.filter((row) => !row.hidden).length;
  if (!shown) {
    const none = make("td", "No side has this in its name.", "quiet");
    none.colSpan = table.rows[0].cells.length;
    const row = make("tr");
    row.dataset.none = "";
    row.append(none);
    table.tBodies[0].append(row);
  }
  one(".scroll.board").classList.toggle("long", shown > 15);
  const more = one("[data-unfold]");
  if (more) more.hidden = unfolded || Boolean(wanted);
}

function arrange() {
  const form = one("[data-board]");
  if (!form || form.dataset.ready) return;
  form.dataset.ready = "1";
  one("button", form).hidden = true;
  form.addEventListener("submit", (event) => event.preventDefault());
  one("select", form)?.addEventListener("change", () => {
    const given = new URLSearchParams([...new FormData(form)].filter(([n, v]) => v && n !== "find"));
    swap(`${form.getAttribute("action").split("#")[0]}?${given}`, "board");
  });
  const find = one('input[type="search"]', form);
  if (find) {
    if (wanted) find.value = wanted;
    find.addEventListener("input", () => {
      wanted = find.value.trim().toLowerCase();
      remember({ wanted });
      narrow();
    });
  }
  if (wanted || unfolded) narrow();
}
arrange();
document.addEventListener("pennyweight:parts", arrange);
