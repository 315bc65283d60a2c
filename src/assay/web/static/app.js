// Assay: what a page needs beside links and forms. Nothing here makes HTML from text.
"use strict";

const one = (selector, from = document) => from.querySelector(selector);
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const csrf = one('meta[name="csrf"]').content;

async function call(method, url, body, kind = "application/json") {
  const headers = { "X-Assay-Csrf": csrf };
  if (body !== undefined) headers["Content-Type"] = kind;
  const sent = body !== undefined && kind === "application/json" ? JSON.stringify(body) : body;
  const answer = await fetch(url, { method, headers, body: sent });
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(problem(told.detail) || `The server said ${answer.status}.`);
  return told;
}

function problem(detail) {
  if (Array.isArray(detail)) return detail.map((d) => d.msg || d).join("\n");
  return detail ? String(detail) : "";
}

function make(name, text, kind) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

const number = (n) => n.toLocaleString("en");
const many = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;

// Light and dark: the choice is a cookie, so that the server sends the right one at once.
one("[data-theme-switch]")?.addEventListener("click", () => {
  const now = document.documentElement.dataset.theme
    || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const next = now === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  document.cookie = `theme=${next}; path=/; max-age=31536000; samesite=lax`;
});

one("[data-leave]")?.addEventListener("click", async () => {
  await fetch("/leave", { method: "POST", headers: { "X-Assay-Csrf": csrf } });
  location.href = "/";
});

// Keys: j and k move, Enter opens, n and p turn the page, x chooses, / searches.
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

// A row leads where its link leads.
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
  const names = all("input:checked", box).map((input) => input.value);
  const address = new URL(location.href);
  address.searchParams.set("columns", names.join(","));
  location.href = address;
});

// How many records a filter finds is counted after they are shown.
const counted = one("[data-count]");
if (counted?.dataset.count) {
  call("GET", counted.dataset.count)
    .then((found) => { counted.textContent = `${found.more ? "more than " : ""}${number(found.count)}`; })
    .catch(() => {});
}

// Who says something is remembered in this browser.
for (const field of all("[data-who]")) {
  field.value = localStorage.getItem("who") || "";
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
      body.tags = given.get("tags").split(",").map((tag) => tag.trim()).filter(Boolean);
    }
    try {
      await call("POST", form.dataset.remark, body);
      location.reload();
    } catch (error) {
      say(form, error.message);
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

// A page whose numbers are being computed looks again until they are there.
const stale = one("[data-stale]");
if (stale && !one("[data-progress]")) {
  const look = setInterval(async () => {
    const state = await call("GET", stale.dataset.stale).catch(() => null);
    if (state) tellDone(state);
    if (state && !state.digest) {
      clearInterval(look);
      location.reload();
    }
  }, 1500);
}
if (one("[data-waiting]")) {
  const look = setInterval(async () => {
    const state = await call("GET", "/api/runs").catch(() => null);
    if (state && !state.waiting.length) {
      clearInterval(look);
      location.reload();
    }
  }, 1500);
}

// Progress comes from the store, so a reload loses nothing.
const panel = one("[data-progress]");
if (panel) {
  const api = `/api/runs/${encodeURIComponent(panel.dataset.run)}`;
  let before = null;
  let wasRunning = one("[data-status]").textContent === "running" || Boolean(stale);
  const show = (state) => {
    tellDone(state);
    one("progress", panel).value = state.made;
    one("[data-made]", panel).textContent =
      `${number(state.made)} of ${number(state.attempts)} attempts made`;
    one("[data-errors]", panel).textContent =
      state.errors ? `${number(state.errors)} could not be made` : "";
    one("[data-cost]", panel).textContent =
      state.cost_usd === null ? "" : `$${state.cost_usd.toPrecision(3)}`;
    const now = performance.now();
    if (before && state.made > before.made) {
      const rate = (state.made - before.made) / ((now - before.now) / 1000);
      const left = Math.ceil((state.attempts - state.made) / rate);
      one("[data-rate]", panel).textContent = `${rate.toFixed(1)} a second, about ${left} s left`;
    }
    if (!before || state.made > before.made) before = { made: state.made, now };
    const running = state.status === "running" || state.here;
    const status = one("[data-status]");
    if (status) status.textContent = state.here ? "running" : state.status;
    one("[data-stop]", panel).hidden = !state.here;
    one("[data-resume]", panel).hidden = running;
    one("[data-said]", panel).textContent = state.said;
    if (running) wasRunning = true;
    else {
      one("[data-rate]", panel).textContent = "";
      if (wasRunning && !state.digest) location.reload();
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
    event.target.disabled = true;
    await call("POST", `${api}/stop`).catch((error) => say(panel, error.message));
    event.target.disabled = false;
  });
  one("[data-resume]", panel).addEventListener("click", async () => {
    try {
      await call("POST", `${api}/resume`);
      wasRunning = true;
      watch();
    } catch (error) {
      say(panel, error.message);
    }
  });
}

// New run: choose or upload, see the plan, start.
const form = one("[data-new]");
if (form) {
  const suite = one("[data-suite]", form);
  const start = one("[data-start]", form);
  const wrong = one("[data-problem]", form);
  const sets = { subjects: one("[data-subjects]", form), tiers: one("[data-tiers]", form) };
  let asked = 0;

  const tell = (error) => {
    wrong.hidden = !error;
    wrong.textContent = error ? error.message : "";
  };

  const chosen = () => {
    const body = { suite: suite.value };
    for (const [name, box] of Object.entries(sets)) {
      const inputs = all("input", box);
      const on = inputs.filter((input) => input.checked).map((input) => input.value);
      if (on.length && on.length < inputs.length) body[name] = on;
    }
    const { runs, usd } = form.elements;
    if (runs.value) body.runs = Number(runs.value);
    if (usd.value) body.usd = Number(usd.value);
    return body;
  };

  const boxes = (box, title, names) => {
    box.replaceChildren(make("span", title, "quiet"));
    for (const name of names) {
      const label = make("label", undefined, "row");
      const input = make("input");
      Object.assign(input, { type: "checkbox", checked: true, value: name });
      label.append(input, document.createTextNode(name.slice(0, 80)));
      box.append(label);
    }
  };

  const showPlan = (plan) => {
    const box = one("[data-plan]", form);
    const cost = plan.cost_usd === null
      ? `$${plan.cost_usd_at_least.toPrecision(3)} or more: not every price or limit is known`
      : `At most about $${plan.cost_usd.toPrecision(3)}`;
    const rows = make("table", undefined, "facts");
    for (const side of plan.plan) {
      const row = rows.insertRow();
      row.append(make("th", `${side.subject} · ${side.tier}`));
      const limit = side.output_tokens === null ? "no limit" : `at most ${number(side.output_tokens)}`;
      row.append(make("td", `${number(side.attempts)} attempts, ${number(side.prompt_tokens)} tokens in, ${limit} out`));
    }
    box.replaceChildren(
      make("h2", "The plan"),
      make("p", `${number(plan.attempts)} attempts: ${many(plan.tasks, "task")} × ${many(plan.subjects, "subject")} × ${many(plan.tiers, "tier")} × ${many(plan.runs, "attempt")}. ${cost}.`),
      rows,
      ...plan.warnings.map((text) => make("p", text, "bad")),
    );
    const example = plan.plan[0]?.example || [];
    if (example.length) {
      const details = make("details");
      details.append(make("summary", "An example prompt", "quiet"));
      for (const turn of example) {
        const part = make("div", undefined, "part");
        part.append(make("div", turn.role), make("div", turn.content, "said"));
        details.append(part);
      }
      box.append(details);
    }
  };

  const plan = async (fresh) => {
    if (!suite.value) return;
    asked += 1;
    const mine = asked;
    start.disabled = true;
    if (fresh) Object.values(sets).forEach((box) => box.replaceChildren());
    try {
      const found = await call("POST", "/api/plan", chosen());
      if (mine !== asked) return;
      tell(null);
      if (fresh) {
        boxes(sets.subjects, "Subjects", found.subjects_named);
        boxes(sets.tiers, "Tiers", found.tiers_named);
        form.elements.runs.placeholder = found.runs;
      }
      showPlan(found);
      start.disabled = false;
    } catch (error) {
      if (mine === asked) tell(error);
    }
  };

  suite.addEventListener("change", () => plan(true));
  form.addEventListener("change", (event) => {
    if (event.target.closest("[data-subjects], [data-tiers], [name=runs], [name=usd]")) plan(false);
  });

  const file = one("[data-upload]", form);
  const dataset = one("[data-dataset]", form);
  const kindOf = (name) => name.toLowerCase().split(".").pop();
  const upload = async () => {
    const held = file.files[0];
    const kind = kindOf(held.name);
    const query = new URLSearchParams();
    if (kind === "yaml" || kind === "yml") query.set("kind", "suite");
    else {
      query.set("kind", kind);
      for (const name of ["name", "subject", "answer", "prompt"]) {
        query.set(name, form.elements[name].value || (name === "name" ? held.name : ""));
      }
    }
    try {
      const made = await call("POST", `/api/uploads?${query}`, held, "application/octet-stream");
      location.href = `/new?suite=${encodeURIComponent(made.suite)}`;
    } catch (error) {
      tell(error);
    }
  };
  file.addEventListener("change", () => {
    if (!file.files.length) return;
    const isSuite = ["yaml", "yml"].includes(kindOf(file.files[0].name));
    dataset.hidden = isSuite;
    if (isSuite) upload();
  });
  one("[data-send]", form).addEventListener("click", upload);

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    start.disabled = true;
    try {
      const made = await call("POST", "/api/runs", chosen());
      location.href = `/runs/${encodeURIComponent(made.run)}`;
    } catch (error) {
      tell(error);
      start.disabled = false;
    }
  });
  plan(true);
}
