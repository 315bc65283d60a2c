// The leaderboard: links and choices exchange one part of the page; names are searched as you type.
"use strict";

async function swap(url, name, keep = true) {
  const part = one(`[data-part="${name}"]`);
  if (!part) return location.assign(url);
  part.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(url);
    if (!answer.ok) throw new Error(answer.status);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const other = one(`[data-part="${name}"]`, fresh);
    const focus = document.activeElement?.getAttribute("href");
    const place = one(".scroll", part)?.scrollLeft;
    part.replaceWith(document.adoptNode(other));
    const said = name === "board" && one(".conclusion", fresh);
    if (said) one(".conclusion")?.replaceWith(document.adoptNode(said));
    if (place && one(".scroll", other)) one(".scroll", other).scrollLeft = place;
    if (name === "board") all('[data-part="grid"]', fresh).forEach((grid) => one('[data-part="grid"]')?.replaceWith(document.adoptNode(grid)));
    if (keep && new URL(url, location).pathname === location.pathname) history.pushState({ part: name }, "", url);
    document.dispatchEvent(new Event("pennyweight:parts"));
    const again = focus && all("a", other).find((a) => a.getAttribute("href") === focus);
    (again || one(".scroll", other))?.focus({ preventScroll: true });
  } catch {
    location.assign(url);
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-swap]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  if ("unfold" in link.dataset) {
    for (const row of all("[data-folded]")) row.hidden = false;
    link.remove();
    return;
  }
  swap(link.href, link.dataset.swap);
});

addEventListener("popstate", () => swap(location.href, one('[data-part="board"]') ? "board" : "grid", false));

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
  find?.addEventListener("input", () => {
    const wanted = find.value.trim().toLowerCase();
    for (const row of all("table.board tbody tr[data-name]")) {
      const folded = "folded" in row.dataset && one("[data-unfold]");
      row.hidden = wanted ? !row.dataset.name.includes(wanted) : Boolean(folded);
    }
    for (const row of all("table.board tr.cut")) row.hidden = Boolean(wanted);
  });
}
arrange();
document.addEventListener("pennyweight:parts", arrange);

// A chart is saved as PNG by drawing its SVG, three times as large.
function offerPng() {
  for (const link of all("a[data-png]")) link.hidden = false;
}
offerPng();
document.addEventListener("pennyweight:parts", offerPng);
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-png]");
  if (!link) return;
  event.preventDefault();
  const picture = new Image();
  picture.onload = () => {
    const canvas = make("canvas");
    [canvas.width, canvas.height] = [1.5 * picture.naturalWidth, 1.5 * picture.naturalHeight];
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => {
      const save = make("a");
      save.href = URL.createObjectURL(blob);
      save.download = `${link.dataset.png}.png`;
      save.click();
      setTimeout(() => URL.revokeObjectURL(save.href), 10000);
    }, "image/png");
  };
  picture.src = link.href;
});
