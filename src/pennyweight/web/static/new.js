// New run: choose or upload a suite, see its plan, start it. Loaded after app.js.
"use strict";

const form = one("[data-new]");
if (form) {
  const suite = one("[data-suite]", form);
  const start = one("[data-start]", form);
  const wrong = one("[data-problem]", form);
  const sets = { subjects: one("[data-subjects]", form), tiers: one("[data-tiers]", form) };
  let asked = 0;

  const file = one("[data-upload]", form);
  const dataset = one("[data-dataset]", form);
  const titleOf = (field) => field.closest("label").firstChild.textContent.trim();

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
    const { limit, runs, usd } = form.elements;
    if (limit.value) body.limit = Number(limit.value);
    if (runs.value) body.runs = Number(runs.value);
    if (usd.value) body.usd = Number(usd.value);
    return body;
  };

  // Return why no plan can be requested.
  const nothing = () => {
    if (file.files.length) return "The chosen file is not uploaded yet.";
    for (const name of ["limit", "runs", "usd"]) {
      const field = form.elements[name];
      if (!field.checkValidity()) return `${titleOf(field)}: ${field.validationMessage}`;
    }
    const empty = Object.keys(sets).filter((name) => {
      const inputs = all("input", sets[name]);
      return inputs.length && !inputs.some((input) => input.checked);
    });
    return empty.length ? `Choose at least one of the ${empty.join(" and one of the ")}.` : "";
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
    const { usd } = form.elements;
    if (!usd.value) usd.placeholder = plan.cost_limit_usd ?? "none";
    const box = one("[data-plan]", form);
    const money = (usd) => `$${usd.toLocaleString("en-US", { maximumSignificantDigits: 3 })}`;
    const cost = plan.cost_usd === null
      ? `${money(plan.cost_usd_at_least)} or more: some prices or limits are unknown`
      : `At most about ${money(plan.cost_usd)}`;
    const rows = make("table", undefined, "facts");
    for (const side of plan.plan) {
      const row = rows.insertRow();
      row.append(make("th", `${side.subject} · ${side.tier}`));
      const limit = side.output_tokens === null ? "no limit of output tokens" : `at most ${many(side.output_tokens, "output token")}`;
      row.append(make("td", `${many(side.attempts, "attempt")}, ${many(side.prompt_tokens, "input token")}, ${limit}`));
    }
    box.replaceChildren(
      make("h2", "Plan"),
      make("p", `${many(plan.attempts, "attempt")}: ${many(plan.tasks, "task")} × ${many(plan.subjects, "subject")} × ${many(plan.tiers, "tier")} × ${many(plan.runs, "attempt")} per task. ${cost}.`),
      rows,
      ...(plan.narrowed ? [make("p", `The run will have ${plan.narrowed}. Its numbers are not those of the whole suite.`)] : []),
      ...[...plan.unsound, ...plan.warnings].map((text) => make("p", text, "bad")),
    );
    const example = plan.plan[0]?.example || [];
    if (example.length) {
      const details = make("details");
      details.append(make("summary", "Example prompt", "quiet"));
      for (const turn of example) {
        const part = make("div", undefined, "part");
        part.append(make("div", turn.role), make("div", turn.content, "said"));
        details.append(part);
      }
      box.append(details);
    }
  };

  const noPlan = (text) => {
    one("[data-plan]", form).replaceChildren(make("h2", "Plan"), make("p", text, "quiet"));
  };

  const plan = async (fresh) => {
    asked += 1;
    const mine = asked;
    start.disabled = true;
    if (fresh) Object.values(sets).forEach((box) => box.replaceChildren());
    if (!suite.value) {
      tell(null);
      noPlan("Choose or upload a suite to see its plan. No model is called before you click Start.");
      return;
    }
    if (nothing()) {
      noPlan("Nothing to run.");
      tell(new Error(nothing()));
      return;
    }
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
      start.disabled = "look" in form.dataset;
    } catch (error) {
      if (mine !== asked) return;
      noPlan("No plan: see the problem above.");
      tell(error);
    }
  };

  const drop = () => {
    file.value = "";
    dataset.hidden = true;
  };
  suite.addEventListener("change", () => {
    drop();
    plan(true);
  });
  form.addEventListener("change", (event) => {
    if (event.target.closest("[data-subjects], [data-tiers], [name=limit], [name=runs], [name=usd]")) plan(false);
  });

  const SUITES = ["yaml", "yml"];
  const DATA = ["jsonl", "json", "csv", "parquet"];
  const kindOf = (name) => name.toLowerCase().split(".").pop();
  const upload = async () => {
    const held = file.files[0];
    if (!held) return;
    const kind = kindOf(held.name);
    const query = new URLSearchParams();
    const model = form.elements.subject;
    if (SUITES.includes(kind)) query.set("kind", "suite");
    else if (!model.value.trim()) {
      tell(new Error("Model: enter the model to call, such as local/smollm2-135m."));
      model.focus();
      return;
    } else {
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
  // A chosen file replaces the chosen suite, so that nothing else can be started by mistake.
  file.addEventListener("change", () => {
    dataset.hidden = true;
    if (file.files.length) suite.value = "";
    plan(true);
    if (!file.files.length) return;
    const { name } = file.files[0];
    if (SUITES.includes(kindOf(name))) upload();
    else if (DATA.includes(kindOf(name))) {
      dataset.hidden = false;
      noPlan(`${name.slice(0, 80)} is not uploaded yet.`);
    } else {
      drop();
      tell(new Error(`${name.slice(0, 80)}: choose a suite (.yaml) or a data set (${DATA.map((k) => `.${k}`).join(", ")}).`));
    }
  });
  one("[data-send]", form).addEventListener("click", upload);
  one("[data-drop]", form).addEventListener("click", () => {
    drop();
    plan(true);
  });
  for (const field of all("input", dataset)) {
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      upload();
    });
  }
  const rule = one("[data-answer]", form);
  const asking = () => all("option", rule).map((option) => option.dataset.prompt);
  rule.addEventListener("change", () => {
    const { prompt } = form.elements;
    if (asking().includes(prompt.value)) prompt.value = rule.selectedOptions[0].dataset.prompt;
  });

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (start.disabled) return;
    start.disabled = true;
    try {
      const made = await call("POST", "/api/runs", chosen());
      location.href = `/runs/${encodeURIComponent(made.run)}`;
    } catch (error) {
      tell(error);
      start.disabled = false;
    }
  });
  if (file.files.length) drop(); // kept by the browser over a reload
  plan(true);
}
