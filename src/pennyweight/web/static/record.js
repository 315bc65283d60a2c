// A record: n and p move along its steps; steps that are cut are completed in place.
"use strict";

const acts = all(".acts > [data-step]");
const places = new Map(all(".steplist a").map((link) => [link.hash.slice(1), link]));
let act = -1;

// The list of steps shows where the reader is, without moving the page.
function mark(index) {
  act = Math.max(0, Math.min(acts.length - 1, index));
  places.forEach((link) => link.removeAttribute("aria-current"));
  const link = places.get(acts[act].id);
  if (!link) return;
  link.setAttribute("aria-current", "true");
  const list = link.closest(".steplist");
  const [at, box] = [link.getBoundingClientRect(), list.getBoundingClientRect()];
  if (at.top < box.top) list.scrollTop += at.top - box.top;
  else if (at.bottom > box.bottom) list.scrollTop += at.bottom - box.bottom;
}

function goTo(index) {
  mark(index);
  acts[act].scrollIntoView({ block: "start" });
  history.replaceState(null, "", `#${acts[act].id}`);
}

// The step that is read is the last one that begins in the upper third of the window. After a jump
// to a step, that one is, as long as it is in sight there.
let marking = false;
addEventListener("scroll", () => {
  if (marking || !places.size) return;
  marking = true;
  requestAnimationFrame(() => {
    marking = false;
    const top = acts[act]?.getBoundingClientRect().top ?? Infinity;
    if (top >= -1 && top < innerHeight / 3) return;
    let [low, high] = [0, acts.length];  // steps are below each other, and there may be hundreds
    while (low < high) {
      const middle = (low + high) >> 1;
      if (acts[middle].getBoundingClientRect().top < innerHeight / 3) low = middle + 1;
      else high = middle;
    }
    if (low - 1 !== act && low) mark(low - 1);
  });
}, { passive: true });

for (const link of places.values()) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    goTo(acts.findIndex((one) => one.id === link.hash.slice(1)));
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

// Fetch steps by their indices and put them in place, without moving what is in sight.
async function complete(first, last) {
  const form = one("form:has(> .acts)");
  const asked = { key: form.elements.key.value, n: first + 1, ...(last > first && { to: last + 1 }) };
  const whole = `${form.action}?${new URLSearchParams(asked)}`;
  const answer = await fetch(whole).catch(() => null);
  if (!answer?.ok) return whole;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const seen = acts.findIndex((step) => step.getBoundingClientRect().top >= 0);
  const before = acts[seen]?.getBoundingClientRect().top;
  for (const step of all("[data-step]", fresh)) {
    const index = acts.findIndex((old) => old.id === step.id);
    const made = document.adoptNode(step);
    acts[index].replaceWith(made);
    acts[index] = made;
  }
  for (const _ of "12") await new Promise(requestAnimationFrame);  // the browser may scroll itself
  if (seen >= 0) scrollBy(0, acts[seen].getBoundingClientRect().top - before);
  return null;
}

one("form:has(> .acts)")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const index = Number(event.submitter.value) - 1;
  const failed = await complete(index, index);
  if (failed) location.href = failed;
});

// Of many steps the page has only the beginnings. Those that come into sight are completed.
const waiting = new Set();
let pause = 0;

let busy = false;

async function completeSome() {
  if (busy) return;
  busy = true;
  for (let failed = null; waiting.size && failed === null;) {
    const newest = [...waiting].pop();
    const some = [...waiting].filter((index) => Math.abs(index - newest) < 8);
    some.forEach((index) => waiting.delete(index));
    failed = await complete(Math.min(...some), Math.max(...some));
  }
  busy = false;
}

const sight = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const index = acts.indexOf(target);
    if (!isIntersecting) { waiting.delete(index); continue; }
    sight.unobserve(target);
    waiting.add(index);
  }
  clearTimeout(pause);
  pause = setTimeout(completeSome, 120);
}, { rootMargin: "100px 0px 500px" });
if (acts.length > 8) all("button[name=n]").forEach((more) => sight.observe(more.closest("[data-step]")));
