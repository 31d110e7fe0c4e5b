(() => {
  "use strict";

  // -- going from section to section
  const heads = [...document.querySelectorAll("main > section h2")];
  const links = new Map([...document.querySelectorAll(".contents a")].map((a) => [a.getAttribute("href").slice(1), a]));
  const go = (head) => {
    if (!head) return;
    const part = head.closest("details");
    if (part) part.open = true;
    head.focus({ preventScroll: true });
    head.scrollIntoView({ block: "start" });
  };
  const move = (by) => {
    const top = get("main").firstElementChild.getBoundingClientRect().top;
    let here = heads.indexOf(document.activeElement);
    if (here < 0) here = top > 0 ? -1 : heads.findLastIndex((h) => h.getBoundingClientRect().top < 120);
    go(heads[Math.min(heads.length - 1, Math.max(0, here + by))]);
  };
  const watch = new IntersectionObserver(() => {
    const now = heads.findLast((h) => h.getBoundingClientRect().top < innerHeight / 3);
    for (const [ident, link] of links) {
      if (now && ident === now.id) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    }
  }, { threshold: [0, 1], rootMargin: "0px 0px -66% 0px" });
  for (const head of heads) watch.observe(head);

  const jump = () => go(heads.find((head) => `#${head.id}` === location.hash));
  addEventListener("hashchange", jump);
  jump();
  for (const link of links.values()) {  // a second click on the same link changes no address
    link.addEventListener("click", () => { if (link.getAttribute("href") === location.hash) jump(); });
  }

  // -- finding a task
  const box = get("find"), apart = get("apart"), found = get("found");
  const rows = [...document.querySelectorAll(".episodes .unit")];
  const names = new Map(rows.map((row) => [row, row.firstElementChild.textContent.toLowerCase()]));
  const find = () => {
    const word = box.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const gone = !names.get(row).includes(word) || apart.checked && !row.classList.contains("apart");
      row.classList.toggle("gone", gone);
      shown += !gone;
    }
    for (const group of document.querySelectorAll(".episodes tbody")) {
      group.classList.toggle("gone", !group.querySelector(".unit:not(.gone)"));
    }
    found.textContent = word || apart.checked ? `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "";
  };
  if (box) {
    box.addEventListener("input", find);
    apart.addEventListener("change", find);
    box.addEventListener("keydown", (e) => {
      if (e.key !== "Escape") return;
      box.value = "";
      find();
      box.blur();
    });
    find();  // a browser that goes back fills in what was typed before
  }

  // -- keys
  onKeys({
    j: () => move(1), k: () => move(-1),
    "/": () => { if (box) { go(get("episodes")); box.focus(); box.select(); } },
    d: () => { if (apart) { go(get("episodes")); apart.checked = !apart.checked; find(); } },
  });

  // -- on paper everything is open
  const shut = [];
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details:not([open])")) { part.open = true; shut.push(part); }
  });
  addEventListener("afterprint", () => { while (shut.length) shut.pop().open = false; });
})();
