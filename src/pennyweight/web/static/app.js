// Scripts of every page. They insert only text, or parts of pages from the server itself.
"use strict";

const one = (selector, from = document) => from.querySelector(selector);
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const csrf = one('meta[name="csrf"]').content;

async function call(method, url, body, kind = "application/json") {
  const headers = { "X-Pennyweight-Csrf": csrf };
  if (body !== undefined) headers["Content-Type"] = kind;
  const sent = body !== undefined && kind === "application/json" ? JSON.stringify(body) : body;
  const answer = await fetch(url, { method, headers, body: sent });
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    const text = problem(told.detail) || `The server answered with status ${answer.status}.`;
    throw Object.assign(new Error(text), { trust: told.trust });
  }
  return told;
}

function problem(detail) {
  if (Array.isArray(detail)) return detail.map((d) => (d.msg ? `${placeOf(d)}${d.msg}` : d)).join("\n");
  return detail ? String(detail) : "";
}

function placeOf(detail) {
  const names = (detail.loc || []).filter((part) => !["body", "query", "path"].includes(part));
  return names.length ? `${names.join(" ")}: ` : "";
}

function make(name, text, kind) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

const number = (n) => n.toLocaleString("en");
const many = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;

// Light and dark: the choice is a cookie, so that the server sends the right theme at once.
one("[data-theme-switch]")?.addEventListener("click", () => {
  const now = document.documentElement.dataset.theme
    || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const next = now === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  document.cookie = `theme=${next}; path=/; max-age=31536000; samesite=lax`;
});

one("[data-leave]")?.addEventListener("click", async () => {
  await fetch("/leave", { method: "POST", headers: { "X-Pennyweight-Csrf": csrf } });
  location.href = "/";
});

// Keys: j and k move, Enter opens, n and p go to the next and previous page, x selects, / searches.
let at = -1;
function move(step) {
  const rows = all("[data-keys] tbody tr[data-href]");
  if (!rows.length) return;
  rows[at]?.classList.remove("at");
  at = Math.min(rows.length - 1, Math.max(0, at + step));
  rows[at].classList.add("at");
  rows[at].scrollIntoView({ block: "nearest" });
  one("a", rows[at])?.focus({ preventScroll: true });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const follow = (selector) => one(selector)?.click();
  const keys = {
    j: () => (one("[data-j]") ? follow("[data-j]") : move(1)),
    k: () => (one("[data-k]") ? follow("[data-k]") : move(-1)),
    n: () => follow('.pager a[rel="next"]'),
    p: () => follow('.pager a[rel="prev"]'),
    x: () => follow("tr.at input[type=checkbox]"),
    "/": () => one("[data-slash]")?.focus(),
  };
  if (keys[event.key]) {
    event.preventDefault();
    keys[event.key]();
  }
});

// A click on a row follows its link.
document.addEventListener("click", (event) => {
  const row = event.target.closest("tr[data-href]");
  if (!row || event.target.closest("a, input, button, details") || String(getSelection())) return;
  location.href = row.dataset.href;
});

// Empty fields stay out of the address.
for (const form of all('form[method="get"]')) {
  form.addEventListener("submit", () => {
    for (const field of all("input, select", form)) if (!field.value) field.disabled = true;
  });
}
addEventListener("pageshow", () => all("form[method=get] :disabled").forEach((f) => { f.disabled = false; }));

for (const choice of all("[data-range]")) {
  choice.addEventListener("change", () => {
    const [low, high] = all("input", choice.closest("fieldset"));
    [low.name, high.name] = [`${choice.value}_min`, `${choice.value}_max`];
  });
}

one("[data-columns]")?.addEventListener("change", (event) => {
  const box = event.currentTarget;
  box.closest("form").elements.columns.value = all("input:checked", box).map((input) => input.value).join(",");
});

// Matching records are counted after the page is shown.
const counted = one("[data-count]");
if (counted?.dataset.count) {
  call("GET", counted.dataset.count)
    .then((found) => {
      counted.textContent = `${found.more ? "more than " : ""}${number(found.count)}`;
      const of = one("[data-of]");
      if (of) of.textContent = ` of ${counted.textContent}`;
    })
    .catch(() => {});
}

// Disable what a read-only token cannot save.
if ("look" in document.body.dataset) {
  for (const box of all("[data-remark], [data-verdict]")) {
    for (const field of all("input, textarea, select, button", box)) field.disabled = true;
    box.append(make("small", "Read only: this token allows viewing only.", "quiet"));
  }
}

// The browser remembers the name of the person.
for (const field of all("[data-who]")) {
  field.defaultValue = localStorage.getItem("who") || "";
  field.addEventListener("change", () => localStorage.setItem("who", field.value));
}

for (const form of all("[data-remark]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const given = new FormData(form);
    const body = { who: given.get("who") || "" };
    if (given.get("note")) body.note = given.get("note");
    if (form.dataset.record) {
      body.key = form.dataset.record;
      if (given.get("verdict")) body.verdict = given.get("verdict");
    } else {
      const [old, now] = [form.elements.tags.defaultValue, form.elements.tags.value].map(
        (text) => text.split(",").map((tag) => tag.trim()).filter(Boolean));
      body.add = now.filter((tag) => !old.includes(tag));
      body.remove = old.filter((tag) => !now.includes(tag));
    }
    try {
      await call("POST", form.dataset.remark, body);
      location.reload();
    } catch (error) {
      say(form, error.message);
    }
  });
}

for (const box of all("[data-verdict]")) {
  one("button", box).addEventListener("click", async () => {
    const { verdict, policy, subject, tier, baseline } = box.dataset;
    const side = { subject: subject || null, tier: tier || null };
    try {
      await call("POST", verdict, { policy, ...side, baseline: baseline || null });
      location.reload();
    } catch (error) {
      say(box, error.message);
    }
  });
}

function say(near, text) {
  let box = one(":scope > .notice", near);
  if (!box) {
    box = make("div", undefined, "notice bad");
    box.setAttribute("role", "alert");
    near.append(box);
  }
  box.textContent = text;
}

function tellDone(state) {
  const place = one("[data-done]");
  if (!place || state.digest_done === null) return;
  place.textContent = ` ${Math.floor(100 * state.digest_done)} % done.`;
}

// Never replace a form that somebody has started to fill in.
function isBusy() {
  if (document.activeElement?.closest("input, select, textarea")) return true;
  return all("input, textarea").some((field) => (
    ["checkbox", "radio"].includes(field.type)
      ? field.checked !== field.defaultChecked : field.value !== field.defaultValue));
}

function offer(box, text) {
  const button = make("button", "Show");
  button.type = "button";
  button.addEventListener("click", () => location.reload());
  box.hidden = false;
  box.className = "notice";
  box.replaceChildren(document.createTextNode(`${text} `), button);
}

// Refresh parts of a page; forms, open details and the focus stay.
let fetching = false;
async function refresh() {
  if (fetching) return false;
  fetching = true;
  try {
    const answer = await fetch(location.href);
    if (!answer.ok) return false;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const scrolls = [];
    for (const part of all("[data-part]")) {
      const other = one(`[data-part="${part.dataset.part}"]`, fresh);
      if (!other) continue;
      const places = all(".scroll", part).map((box) => [box.scrollLeft, box.scrollTop]);
      const open = new Set(all("details[open] > summary", part).map((s) => s.textContent));
      const focused = part.contains(document.activeElement) ? document.activeElement.textContent : null;
      const chosen = new Set(all("input:checked", part).map((input) => input.value));
      part.replaceWith(document.adoptNode(other));
      for (const input of all("input[type=checkbox]", other)) input.checked = chosen.has(input.value);
      if (at >= 0 && other.matches("tbody")) other.rows[at]?.classList.add("at");
      scrolls.push([other, places]);
      for (const head of all("summary", other)) head.parentElement.open = open.has(head.textContent);
      if (focused) {
        all("a, summary", other).find((e) => e.textContent === focused)?.focus({ preventScroll: true });
      }
    }
    document.dispatchEvent(new Event("pennyweight:parts"));
    for (const [part, places] of scrolls) {
      all(".scroll", part).forEach((box, i) => places[i] && box.scrollTo(...places[i]));
    }
    return true;
  } catch {
    return false;
  } finally {
    fetching = false;
  }
}

// A page whose numbers are being computed polls until they are ready.
if (one("[data-stale]") && !one("[data-progress]")) {
  const look = setInterval(async () => {
    const stale = one("[data-stale]");
    if (!stale) return clearInterval(look);
    const state = await call("GET", stale.dataset.stale).catch(() => null);
    if (!state) return null;
    tellDone(state);
    if (state.problem && !one("[data-part]")) {
      clearInterval(look);
      stale.textContent = state.problem;
    } else if (state.problem || state.shown !== stale.dataset.shown) {
      if (one("[data-part]")) return refresh();
      clearInterval(look);
      if (isBusy() || "offer" in stale.dataset) offer(stale, "Newer records have been measured.");
      else location.reload();
    }
    return null;
  }, 1500);
}

// The list of runs follows runs in progress and metrics being computed.
if (one("[data-waiting]")) {
  let shown = "";
  const look = setInterval(async () => {
    const state = document.hidden ? null : await call("GET", "/api/runs").catch(() => null);
    if (!state) return;
    const now = JSON.stringify([state.waiting, state.runs.map((r) => [r.id, r.status, r.value, r.problem])]);
    const over = !state.waiting.length && !state.runs.some((run) => run.status === "running");
    if (now !== shown && await refresh()) shown = now;
    if (over && now === shown) clearInterval(look);
  }, 1500);
}

// Progress comes from the store, so a reload loses nothing.
const panel = one("[data-progress]");
if (panel) {
  const api = `/api/runs/${encodeURIComponent(panel.dataset.run)}`;
  const may = !("look" in document.body.dataset);
  let seen = [];
  let stopping = false;
  // The rate over the last minute; the first seconds give no useful rate.
  const pace = (made) => {
    const now = performance.now() / 1000;
    if (!seen.length || made > seen.at(-1).made) seen.push({ made, now });
    while (seen.length > 2 && now - seen[0].now > 60) seen.shift();
    const spent = now - seen[0].now;
    return seen.length > 2 && spent >= 4 ? (made - seen[0].made) / spent : null;
  };
  const time = (seconds) => {
    if (seconds < 90) return `${Math.max(5, 5 * Math.round(seconds / 5))} s`;
    return seconds < 5400 ? `${Math.round(seconds / 60)} minutes` : `${Math.round(seconds / 3600)} hours`;
  };
  let wasRunning = one("[data-status]").textContent === "running" || Boolean(one("[data-stale]"));
  let shown = panel.dataset.shown;
  const show = (state) => {
    tellDone(state);
    one("progress", panel).value = state.made;
    one("[data-made]", panel).textContent =
      `${number(state.made - (state.errors || 0))} of ${number(state.attempts)} attempts done`;
    one("[data-errors]", panel).textContent =
      state.errors ? many(state.errors, "error") : "";
    one("[data-cost]", panel).textContent =
      state.cost_usd === null ? "" : `$${state.cost_usd.toLocaleString("en-US", { maximumSignificantDigits: 3 })}`;
    const rate = pace(state.made);
    if (rate) {
      const left = time((state.attempts - state.made) / rate);
      one("[data-rate]", panel).textContent = `${rate.toFixed(1)} per second, about ${left} left`;
    }
    const running = state.status === "running" || state.here;
    const status = one("[data-status]");
    stopping = stopping && running;
    const word = stopping ? "stopping" : state.here ? "running" : state.status;
    const outcome = stopping || state.here ? [word, ""] : state.outcome;
    status.textContent = outcome[0];
    status.classList.toggle("good", outcome[1] === "good");
    status.classList.toggle("bad", outcome[1] === "bad");
    one("[data-stop]", panel).hidden = !state.here;
    one("[data-resume]", panel).hidden = running || word === "done";
    one("[data-stop]", panel).textContent = stopping ? "Stopping …" : "Stop";
    one("[data-stop]", panel).disabled = stopping || !may;
    if (state.said || running) {
      one("[data-said]", panel).textContent = stopping ? "Waiting for the calls in progress. Their answers are stored." : state.said;
    }
    else if (word === "interrupted") one("[data-said]", panel).textContent = one("[data-said]", panel).dataset.said;
    if (running) wasRunning = true;
    if (!running || stopping) one("[data-rate]", panel).textContent = "";
    const over = !running && !state.digest;
    if (state.shown !== shown || (over && wasRunning)) {
      refresh().then((done) => {
        if (!done) return;
        shown = state.shown;
        if (over) wasRunning = false;
      });
    }
  };
  let source = null;
  const watch = () => {
    source?.close();
    source = new EventSource(panel.dataset.progress);
    source.onmessage = (event) => {
      const state = JSON.parse(event.data);
      show(state);
      if (state.status !== "running" && !state.here && !state.digest) source.close();
    };
  };
  watch();
  one("[data-stop]", panel).addEventListener("click", async (event) => {
    const button = event.target;
    button.disabled = true;
    button.textContent = "Stopping …";
    stopping = true;
    await call("POST", `${api}/stop`).catch((error) => {
      stopping = false;
      button.disabled = false;
      button.textContent = "Stop";
      say(panel, error.message);
    });
  });
  one("[data-resume]", panel).addEventListener("click", async () => {
    // What the suite names is confirmed first, then what the files that it names add.
    const resume = (trust) => call("POST", `${api}/resume?trust=${trust}`).catch((error) => {
      const asks = error.trust && error.trust !== trust;
      if (!asks || !window.confirm(`${error.message}\n\nAllow this?`)) throw error;
      return resume(error.trust);
    });
    try {
      await resume("");
      wasRunning = true;
      seen = [];
      watch();
    } catch (error) {
      say(panel, error.message);
    }
  });
}
