
(() => {
  "use strict";
  const steps = [...document.querySelectorAll("main .step")].filter((s) => !s.parentElement.closest(".step"));
  const head = (step) => step.querySelector("summary");
  const folded = (step) => step.firstElementChild;
  const shown = () => steps.filter((s) => s.checkVisibility());

  // -- going to a place: what holds it is opened
  const reveal = (place, open) => {
    for (let e = place; e; e = e.parentElement) {
      if (e.tagName === "DETAILS") e.open = true;
    }
    if (open) { const inner = place.querySelector("details"); if (inner) inner.open = true; }
  };
  const go = (step, open) => {
    reveal(step, open);
    const line = head(step) || step;
    line.focus({ preventScroll: true });
    step.scrollIntoView({ block: open ? "start" : "nearest" });
  };
  const jump = () => {
    const place = location.hash.length > 1 && get(decodeURIComponent(location.hash.slice(1)));
    if (!place) return;
    if (place.matches("li")) go(place, true); else { reveal(place); place.scrollIntoView(); }
  };
  addEventListener("hashchange", jump);
  document.addEventListener("click", (e) => {
    const link = e.target.closest("a[href^='#']");
    if (link && link.getAttribute("href") === location.hash) { e.preventDefault(); jump(); }
  });

  // -- steps
  if (!steps.length) get("fold").hidden = true;
  const current = () => steps.findIndex((s) => s.contains(document.activeElement));
  const move = (by, wants) => {
    const list = shown();
    if (!list.length) return;
    const here = current();
    let at = list.indexOf(steps[here]);
    if (at < 0) {  // from nowhere: the first step that is on the screen, or beyond the end of it
      const first = list.findIndex((s) => s.getBoundingClientRect().bottom > 60);
      at = by > 0 ? (first < 0 ? list.length : first) - 1 : (first < 0 ? list.length : first);
    }
    for (at += by; at >= 0 && at < list.length; at += by) if (!wants || wants(list[at])) return go(list[at]);
  };
  const all = () => {
    const open = steps.some((s) => !folded(s).open && !s.classList.contains("first"));
    for (const s of steps) if (!s.classList.contains("first")) folded(s).open = open;
    label();
  };
  const label = () => {
    get("fold").textContent = steps.some((s) => !folded(s).open && !s.classList.contains("first")) ? "Open all" : "Close all";
  };
  document.addEventListener("toggle", label, true);
  label();

  // -- what scrolls can be scrolled by keys
  const equip = (place) => {
    for (const text of place.querySelectorAll("pre")) if (text.scrollHeight > text.clientHeight) text.tabIndex = 0;
  };
  document.addEventListener("toggle", (e) => { if (e.target.open) equip(e.target); }, true);
  for (const place of document.querySelectorAll("details[open]")) equip(place);

  // -- keys
  const onStep = (by) => (e) => e.target.matches(".step > details > summary") && move(by);
  onKeys({
    j: () => move(1), k: () => move(-1), ArrowDown: onStep(1), ArrowUp: onStep(-1),
    e: () => move(1, (s) => s.classList.contains("failed")), E: () => move(-1, (s) => s.classList.contains("failed")),
    g: () => { const list = shown(); if (list.length) go(list[0]); }, G: () => { const list = shown(); if (list.length) go(list[list.length - 1]); },
    o: all,
  });
  get("fold").addEventListener("click", all);

  if (location.hash) jump();
})();
