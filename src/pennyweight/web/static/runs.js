// The list of runs: chosen runs stay in sight, are renamed, tagged, archived or deleted; views are saved.
"use strict";

const bar = one("[data-chosen]");
const store = (area, key) => ({
  read: () => { try { return JSON.parse(area.getItem(key)) || {}; } catch { return {}; } },
  write: (value) => area.setItem(key, JSON.stringify(value)),
});
const kept = store(sessionStorage, "chosen");
const views = store(localStorage, "views");

if (bar) {
  let chosen = kept.read();
  const boxes = () => all("tr[data-run] input[type=checkbox]");
  const may = !("look" in document.body.dataset);
  one("[data-plain]")?.remove();
  one("[data-actions]", bar).hidden = !may;

  const chip = (text, title, remove) => {
    const made = make("span", text, "tag");
    const button = make("button", "✕");
    button.type = "button";
    button.setAttribute("aria-label", title);
    button.addEventListener("click", remove);
    made.append(button);
    return made;
  };

  const show = () => {
    for (const row of all("tr[data-run]"))
      if (row.dataset.run in chosen) chosen[row.dataset.run] = row.dataset.title;
    const ids = Object.keys(chosen);
    for (const box of boxes()) box.checked = box.value in chosen;
    bar.hidden = !ids.length;
    one("[data-many]", bar).textContent = `${number(ids.length)} chosen`;
    one("[data-chips]", bar).replaceChildren(...ids.map((id) => chip(
      chosen[id] === id ? id : `${chosen[id]} · ${id.slice(-9)}`, `Remove ${id}`, () => pick(id, false))));
    one("[data-to-compare]", bar).href = `/compare?${new URLSearchParams(ids.map((id) => ["run", id]))}`;
    one("[data-do=rename]", bar).hidden = ids.length !== 1;
    kept.write(chosen);
  };
  const pick = (id, on, title) => {
    if (on) chosen[id] = title || id;
    else delete chosen[id];
    show();
  };
  document.addEventListener("change", (event) => {
    const row = event.target.closest("tr[data-run]");
    if (row && event.target.type === "checkbox") pick(row.dataset.run, event.target.checked, row.dataset.title);
  });

  const each = async (act) => {
    try {
      for (const id of Object.keys(chosen)) await act(`/api/runs/${encodeURIComponent(id)}`);
      return true;
    } catch (error) {
      say(bar, error.message);
      return false;
    }
  };
  const form = one("[data-ask]", bar);
  let answer = null;
  const ask = (question, value, yes, act, typed = true) => {
    one("[data-question]", form).textContent = question;
    form.elements.text.value = value;
    form.elements.text.hidden = !typed;
    one("[data-yes]", form).textContent = yes;
    form.hidden = false;
    (typed ? form.elements.text : one("[data-yes]", form)).focus();
    answer = act;
  };
  one("[data-no]", form).addEventListener("click", () => { form.hidden = true; });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (answer && await answer(form.elements.text.value.trim())) location.reload();
  });
  const many = () => Object.keys(chosen).length;
  const what = () => (many() === 1 ? "this run" : `these ${number(many())} runs`);
  const acts = {
    clear: () => { chosen = {}; show(); },
    rename: () => ask("New title", Object.values(chosen)[0], "Rename",
      (title) => each((at) => call("POST", `${at}/label`, { title }))),
    tag: () => ask(`Tag ${what()}`, "", "Tag",
      (tag) => tag && each((at) => call("POST", `${at}/remarks`, { add: [tag], who: localStorage.getItem("who") || "" }))),
    archive: async () => {
      const archived = !new URLSearchParams(location.search).get("archived");
      if (await each((at) => call("POST", `${at}/label`, { archived }))) {
        kept.write({});
        location.reload();
      }
    },
    delete: () => ask(`Delete ${what()} with all records? This cannot be undone.`, "", "Delete", async () => {
      const done = await each((at) => call("DELETE", at));
      if (done) kept.write({});
      return done;
    }, false),
  };
  for (const button of all("[data-do]", bar)) button.addEventListener("click", () => acts[button.dataset.do]());
  // Parts of the list are replaced while runs are in progress.
  new MutationObserver(() => { for (const box of boxes()) box.checked = box.value in chosen; })
    .observe(one("[data-compare]") || bar, { childList: true, subtree: true });
  show();

  // A view is an address with a name, remembered by this browser.
  const line = one("[data-views]");
  const showViews = () => {
    const saved = views.read();
    one("[data-saved]", line).replaceChildren(...Object.entries(saved).map(([name, query]) => {
      const made = chip("", `Forget the view ${name}`, () => {
        delete saved[name];
        views.write(saved);
        showViews();
      });
      const link = make("a", name);
      link.href = `/${query}`;
      made.prepend(link);
      return made;
    }));
    one("[data-save]", line).hidden = !location.search;
    line.hidden = !location.search && !Object.keys(saved).length;
  };
  one("[data-save]", line).addEventListener("submit", (event) => {
    event.preventDefault();
    views.write({ ...views.read(), [event.target.elements.name.value.trim()]: location.search });
    event.target.reset();
    showViews();
  });
  showViews();
}
