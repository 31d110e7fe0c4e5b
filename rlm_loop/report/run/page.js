
(() => {
  "use strict";
  const steps = [...document.querySelectorAll("main .step:not(.first)")].filter((s) => !s.parentElement.closest(".step"));
  const folds = steps.map((step) => step.firstElementChild);

  // -- going to a place: what holds it is opened
  const jump = () => {
    const place = location.hash.length > 1 && get(decodeURIComponent(location.hash.slice(1)));
    if (!place) return;
    for (let e = place; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    const inner = place.matches("li") && place.querySelector("details");
    if (inner) inner.open = true;
    place.scrollIntoView();
  };
  addEventListener("hashchange", jump);
  jump();

  // -- all steps
  const label = () => { get("fold").textContent = folds.some((f) => !f.open) ? "Open all" : "Close all"; };
  get("fold").hidden = !steps.length;
  get("fold").addEventListener("click", () => {
    const open = folds.some((f) => !f.open);
    for (const fold of folds) fold.open = open;
  });

  // -- what scrolls can be scrolled by keys
  const equip = (place) => {
    for (const text of place.querySelectorAll("pre")) if (text.scrollHeight > text.clientHeight) text.tabIndex = 0;
  };
  document.addEventListener("toggle", (e) => { label(); if (e.target.open) equip(e.target); }, true);
  for (const place of document.querySelectorAll("details[open]")) equip(place);
  label();
})();
