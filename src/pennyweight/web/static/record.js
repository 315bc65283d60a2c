// A record: n and p move along its steps; a step that is cut is completed in place.
"use strict";

const acts = all(".acts > [data-step]");
const places = new Map(all(".steplist a").map((link) => [link.hash.slice(1), link]));
let act = -1;

function goTo(index) {
  act = Math.max(0, Math.min(acts.length - 1, index));
  places.forEach((link) => link.removeAttribute("aria-current"));
  const link = places.get(acts[act].id);
  link?.setAttribute("aria-current", "true");
  link?.scrollIntoView({ block: "nearest" });
  acts[act].scrollIntoView({ block: "start" });
}

for (const link of places.values()) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    goTo(acts.findIndex((one) => one.id === link.hash.slice(1)));
    history.replaceState(null, "", link.hash);
  });
}

// The current attempt is in sight in a long matrix.
const matrix = one(".tall:has(> .matrix)");
const here = matrix && one("[aria-current]", matrix);
if (here) matrix.scrollTop = here.offsetTop - matrix.clientHeight / 2;

// In the matrix of attempts, r and w lead to the next right and wrong one. Where no list of records
// is open, j and k lead to the next and the previous attempt.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea")) return;
  if (["n", "p"].includes(event.key) && acts.length) {
    event.preventDefault();
    goTo(act + (event.key === "n" ? 1 : -1));
  }
  if (["j", "k"].includes(event.key) && one("[data-j], [data-k]")) return;
  if (["j", "k", "r", "w"].includes(event.key)) one(`[data-to*="${event.key}"]`)?.click();
  if (event.key === "Enter" && event.target === document.body) one("[data-enter]")?.click();
});

one("form:has(> .acts)")?.addEventListener("submit", async (event) => {
  const form = event.currentTarget;
  const number = event.submitter.value;
  const whole = `${form.action}?${new URLSearchParams({ key: form.elements.key.value, n: number })}`;
  event.preventDefault();
  const answer = await fetch(whole).catch(() => null);
  if (!answer?.ok) { location.href = whole; return; }
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const index = acts.findIndex((step) => step.id === `step-${number}`);
  const made = document.adoptNode(one("[data-step]", fresh));
  acts[index].replaceWith(made);
  acts[index] = made;
});
