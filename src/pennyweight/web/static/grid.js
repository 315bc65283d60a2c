// The grid: rows are fetched as you scroll, and only those in sight are in the page.
"use strict";

const ROW = 27;
const CHUNK = 100;
const SPARE = 12;
const STEP = 4; // rows that come and go together

function word(cell) {
  if (cell === null || cell === undefined) return ["gn", "·", false];
  const [value, attempts, errors] = cell;
  if (value === null) return errors ? ["gx", "!", true] : ["gn", "–", true];
  const kind = `g${Math.max(0, Math.min(10, Math.round(10 * value)))}`;
  if (attempts === 1 && (value === 0 || value === 1)) return [kind, value ? "✓" : "✗", true];
  return [kind, String(Math.round(100 * value)), true];
}

function scrolled(box) {
  const { grid: api, base, tasks, start, columns } = box.dataset;
  const total = Number(tasks);
  const body = one("tbody", box);
  if (total <= body.rows.length && start === "0") return;
  const places = columns.split(",").map(Number);
  const heads = all("thead th[data-query]", box);
  const queries = heads.map((head) => head.dataset.query);
  const chunks = new Map();
  const built = new Map(); // the rows in the page, by their place
  let drawn = "";

  const load = (number) => {
    if (chunks.has(number)) return chunks.get(number);
    const held = { rows: null };
    chunks.set(number, held);
    if (chunks.size > 40) chunks.delete(chunks.keys().next().value);
    const sign = api.includes("?") ? "&" : "?";
    fetch(`${api}${sign}from=${number * CHUNK}&limit=${CHUNK}`)
      .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(answer.status))))
      .then((found) => { held.rows = found.rows; show(true); })
      .catch(() => chunks.delete(number));
    return held;
  };

  const line = (row) => {
    const made = make("tr");
    const head = make("th", undefined, "task");
    head.scope = "row";
    if (!row) {
      head.textContent = "…";
      made.append(head);
      return made;
    }
    const { task, name, category, cells } = row;
    const at = base + encodeURIComponent(task);
    const link = make("a");
    link.append(make("bdi", name.slice(0, 60)));
    link.href = at;
    head.append(link);
    if (category) head.append(make("small", category.slice(0, 40)));
    made.append(head);
    places.forEach((place, index) => {
      const [kind, text, tried] = word(cells[place]);
      const cell = make("td", undefined, kind);
      if (tried) {
        const to = make("a", text);
        to.href = at + queries[index];
        cell.append(to);
      } else cell.textContent = text;
      made.append(cell);
    });
    return made;
  };

  const space = (height) => {
    const made = make("tr", undefined, "space");
    const cell = make("td");
    cell.colSpan = places.length + 1;
    cell.style.height = `${height}px`;
    made.append(cell);
    made.setAttribute("aria-hidden", "true");
    return made;
  };

  const [above, below] = [space(0), space(0)];
  function show(again = false) {
    const seen = Math.ceil(box.clientHeight / ROW);
    const first = Math.max(0, STEP * Math.floor(box.scrollTop / ROW / STEP) - SPARE);
    const last = Math.min(total, first + seen + 2 * SPARE + STEP);
    const now = `${first} ${last}`;
    if (now === drawn && !again) return;
    drawn = now;
    if (!above.isConnected) body.replaceChildren(above, below);
    for (const [at, known] of built) {
      if (at >= first && at < last) continue;
      known.row.remove();
      built.delete(at);
    }
    let before = above;
    for (let at = first; at < last; at += 1) {
      const held = load(Math.floor(at / CHUNK)).rows;
      const known = built.get(at);
      if (known && known.full === Boolean(held)) {
        before = known.row;
        continue;
      }
      known?.row.remove();
      const row = line(held ? held[at % CHUNK] : null);
      built.set(at, { full: Boolean(held), row });
      before.after(row);
      before = row;
    }
    above.cells[0].style.height = `${first * ROW}px`;
    below.cells[0].style.height = `${(total - last) * ROW}px`;
  }

  let asked = false;
  box.addEventListener("scroll", () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; show(); });
  }, { passive: true });
  const pager = box.parentElement.querySelector("[data-pager]");
  if (pager) pager.replaceChildren(make("span", `${many(total, "task")}; scroll to see them all`, "quiet"));
  if (start !== "0") box.scrollTop = Number(start) * ROW;
  const height = box.clientHeight;
  body.append(space((total - body.rows.length) * ROW));
  box.style.height = `${height}px`;
}

const STEPS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
document.addEventListener("keydown", (event) => {
  const cell = event.target.closest?.("table.grid td, table.grid th");
  const step = STEPS[event.key];
  if (!cell || !step || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  const rows = [...cell.closest("table").rows];
  const row = rows[rows.indexOf(cell.parentElement) + step[0]];
  const link = row?.cells[cell.cellIndex + step[1]]?.querySelector("a");
  if (!link) return;
  event.preventDefault();
  link.focus();
});

const grids = () => all("[data-grid]").filter((box) => !box.dataset.ready)
  .forEach((box) => { box.dataset.ready = "1"; scrolled(box); });
grids();
document.addEventListener("pennyweight:parts", grids);
