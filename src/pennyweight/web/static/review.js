// A review queue without a mouse: one key answers, j skips, k goes back, o opens the note.
"use strict";

const answering = one("[data-answer]");

async function give(value) {
  const { answer, record, whoIs, draw, size, seed, state, mark, next } = answering.dataset;
  const body = { who: whoIs };
  const note = answering.elements.note.value;
  if (note) body.note = note;
  if (mark) Object.assign(body, { key: record, mark, holds: value === "yes" });
  else Object.assign(body, { record, verdict: value, draw, size: Number(size), seed: Number(seed), state });
  for (const button of all("button", answering)) button.disabled = true;
  try {
    await call("POST", answer, body);
    location.href = next;
  } catch (error) {
    for (const button of all("button", answering)) button.disabled = false;
    say(answering, error.message);
  }
}

answering?.addEventListener("submit", (event) => event.preventDefault());
for (const button of all("[data-press]")) {
  button.type = "button";
  button.addEventListener("click", () => give(button.value));
}

// Of a long trajectory the page has the beginning; more steps are put below it, and the note stays.
document.addEventListener("click", async (event) => {
  const link = event.target.closest("[data-later]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const answer = await fetch(link.href).catch(() => null);
  if (!answer?.ok) { location.href = link.href; return; }
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const [first, ...others] = all("[data-step]", fresh);
  if (!first) { location.href = link.href; return; }
  one(".acts").append(first, ...others);
  const next = one("[data-later]", fresh);
  if (next) link.replaceWith(next); else link.remove();
  first.tabIndex = -1;
  first.focus();
});

document.addEventListener("keydown", (event) => {
  if (!answering || event.ctrlKey || event.metaKey || event.altKey) return;
  const note = answering.elements.note;
  if (event.target === note) {
    if (["Escape", "Enter"].includes(event.key)) { event.preventDefault(); note.blur(); }
    return;
  }
  if (event.key === "o") { event.preventDefault(); note.focus(); }
  if (event.key === "j") one("[data-skip]")?.click();
  if (event.key === "k") one("[data-back]")?.click();
  one(`[data-press="${CSS.escape(event.key)}"]:not(:disabled)`)?.click();
});
