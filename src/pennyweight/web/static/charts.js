// A chart is saved as PNG by drawing its SVG, three times as large.
"use strict";

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
