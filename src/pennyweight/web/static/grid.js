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

// Only rows in sight are in the page. Gives how to find a row, and how to bring one into sight.
function scrolled(box, total) {
  const { grid: api, base, columns } = box.dataset;
  const body = one("tbody", box);
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

  const remove = (at, row) => {
    if (row.contains(document.activeElement)) box.focus({ preventScroll: true });
    row.remove();
    built.delete(at);
  };

  const [above, below] = [space(0), space(0)];
  function show(again = false) {
    const seen = Math.ceil(box.clientHeight / ROW);
    const first = Math.max(0, STEP * Math.floor(box.scrollTop / ROW / STEP) - SPARE);
    const last = Math.min(total, first + seen + 2 * SPARE + STEP);
    const now = `${first} ${last}`;
    if (now === drawn && !again) return;
    drawn = now;
    for (const [at, { row }] of built) if (at < first || at >= last) remove(at, row);
    let before = above;
    for (let at = first; at < last; at += 1) {
      let known = built.get(at);
      const held = known?.full ? null : load(Math.floor(at / CHUNK)).rows;
      if (!known || held) {
        if (known) remove(at, known.row);
        known = { full: Boolean(held), row: line(held && held[at % CHUNK]) };
        known.row.setAttribute("aria-rowindex", at + 2);
        built.set(at, known);
        before.after(known.row);
      }
      before = known.row;
    }
    above.cells[0].style.height = `${first * ROW}px`;
    below.cells[0].style.height = `${(total - last) * ROW}px`;
    box.dispatchEvent(new Event("drawn"));
  }

  let asked = false;
  box.addEventListener("scroll", () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; show(); });
  }, { passive: true });
  const pager = box.parentElement.querySelector("[data-pager]");
  if (pager) pager.replaceChildren(make("span", `${many(total, "task")}; scroll to see them all`, "quiet"));
  box.style.height = `${box.clientHeight}px`;
  const start = Number(box.dataset.start);
  [...body.rows].forEach((row, index) => built.set(start + index, { full: true, row }));
  above.cells[0].style.height = `${start * ROW}px`;
  below.cells[0].style.height = `${(total - start - built.size) * ROW}px`;
  body.prepend(above);
  body.append(below);
  return {
    rowAt: (at) => built.get(at)?.row,
    reveal: (at) => {
      const head = one("thead", box).offsetHeight;
      const lowest = head + (at + 1) * ROW - box.clientHeight;
      box.scrollTop = Math.max(lowest, Math.min(box.scrollTop, at * ROW));
      show();
    },
  };
}

// The grid is one tab stop: keys move the active cell, also to rows that are not in the page. The
// entry of the history keeps the place, so that Back leads to it.
function grid(box) {
  const [table, body] = [one("table", box), one("tbody", box)];
  const [total, start, columns] = [Number(box.dataset.tasks), Number(box.dataset.start), table.rows[0].cells.length];
  const { grid: place = start * ROW, cell = [start, 0] } = history.state ?? {};
  let [row, column] = [Math.min(cell[0], total - 1), Math.min(cell[1], columns - 1)];
  let held = null; // what Tab leads to
  table.setAttribute("role", "grid");
  table.setAttribute("aria-rowcount", total + 1);
  [...body.rows].forEach((line, index) => line.setAttribute("aria-rowindex", start + index + 2));
  const whole = start === 0 && total <= body.rows.length;
  const { rowAt, reveal } = whole ? { rowAt: (at) => body.rows[at], reveal: () => {} } : scrolled(box, total);

  const stop = () => {
    for (const link of all('tbody a:not([tabindex="-1"])', box)) link.tabIndex = -1;
    const active = rowAt(row)?.cells[column];
    if (held) held.tabIndex = -1;
    held = active ? one("a", active) ?? active : null;
    if (held) held.tabIndex = 0;
    box.tabIndex = held ? -1 : 0;
  };
  const remember = () => {
    if (box.isConnected) history.replaceState({ ...history.state, grid: box.scrollTop, cell: [row, column] }, "");
  };

  box.addEventListener("drawn", () => {
    stop();
    if (document.activeElement === box) held?.focus({ preventScroll: true });
  });
  box.addEventListener("focusin", (event) => {
    const active = event.target.closest("tbody td, tbody th");
    if (!active) return;
    [row, column] = [active.parentElement.getAttribute("aria-rowindex") - 2, active.cellIndex];
    stop();
  });
  box.addEventListener("keydown", (event) => {
    if (event.metaKey || event.altKey || event.shiftKey) return;
    const page = Math.max(1, Math.floor((box.clientHeight - one("thead", box).offsetHeight) / ROW) - 1);
    const [down, right] = {
      ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0],
      PageDown: [page, 0], PageUp: [-page, 0], Home: [0, -columns], End: [0, columns],
    }[event.key] ?? [0, 0];
    if (!(down || right) || (event.ctrlKey && Math.abs(right) < columns)) return;
    event.preventDefault();
    row = Math.max(0, Math.min(total - 1, row + (event.ctrlKey ? right * total : down)));
    column = Math.max(0, Math.min(columns - 1, column + right));
    reveal(row);
    stop();
    if (held) held.focus();
    else box.focus({ preventScroll: true });
  });
  let pause = 0;
  box.addEventListener("scroll", () => {
    clearTimeout(pause);
    pause = setTimeout(remember, 100);
  }, { passive: true });
  box.addEventListener("click", remember, true);
  box.scrollTop = place;
  stop();
}

const grids = () => all("[data-grid]").filter((box) => !box.dataset.ready)
  .forEach((box) => { box.dataset.ready = "1"; grid(box); });
grids();
document.addEventListener("pennyweight:parts", grids);
