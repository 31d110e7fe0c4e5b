
(() => {
  "use strict";
  const steps = [...document.querySelectorAll("main .step")].filter((s) => !s.parentElement.closest(".step"));
  const head = (step) => step.querySelector("summary");
  const folded = (step) => step.firstElementChild;
  const shown = () => steps.filter((s) => !s.classList.contains("gone") && s.checkVisibility());

  // -- going to a place: what holds it is opened
  const bars = new Map([...document.querySelectorAll(".bars a")].map((a) => [a.getAttribute("href").slice(1), a]));
  let bar = null;
  const mark = (step) => {
    if (bar) bar.classList.remove("on");
    bar = step && bars.get(step.id) || null;
    if (bar) bar.classList.add("on");
  };
  const reveal = (place, open) => {
    for (let e = place; e; e = e.parentElement) {
      if (e.tagName === "DETAILS") e.open = true;
      if (e.classList.contains("gone")) e.classList.remove("gone");
    }
    if (open) { const inner = place.querySelector("details"); if (inner) inner.open = true; }
  };
  const go = (step, open) => {
    reveal(step, open);
    const line = head(step) || step;
    line.focus({ preventScroll: true });
    step.scrollIntoView({ block: open ? "start" : "nearest" });
    mark(step);
  };
  const jump = () => {
    const place = location.hash.length > 1 && get(decodeURIComponent(location.hash.slice(1)));
    if (!place) return;
    if (place.matches("li")) go(place, true); else { reveal(place); place.scrollIntoView(); }
  };
  addEventListener("hashchange", jump);
  document.addEventListener("focusin", (e) => { const s = e.target.closest(".step"); if (s) mark(s); });
  document.addEventListener("click", (e) => {
    const link = e.target.closest("a[href^='#']");
    if (link && link.getAttribute("href") === location.hash) { e.preventDefault(); jump(); }
  });

  // -- steps
  if (!steps.length) for (const id of ["filter", "hits", "fold"]) get(id).hidden = true;
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

  // -- finding
  const box = get("filter"), hits = get("hits");
  const texts = new Map();
  const textOf = (s) => { if (!texts.has(s)) texts.set(s, s.textContent.toLowerCase()); return texts.get(s); };
  const count = (text, word) => {
    let n = 0;
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) n += 1;
    return n;
  };
  const paint = (word) => {
    if (!globalThis.CSS || !CSS.highlights) return;
    CSS.highlights.delete("hit");
    if (!word) return;
    const ranges = [];
    for (const s of shown()) {
      const walk = document.createTreeWalker(s, NodeFilter.SHOW_TEXT);
      for (let node = walk.nextNode(); node && ranges.length < 3000; node = walk.nextNode()) {
        const low = node.data.toLowerCase();
        if (low.length !== node.data.length) continue;
        for (let at = low.indexOf(word); at >= 0; at = low.indexOf(word, at + word.length)) {
          const range = new Range();
          range.setStart(node, at);
          range.setEnd(node, at + word.length);
          ranges.push(range);
        }
      }
      if (ranges.length >= 3000) break;
    }
    CSS.highlights.set("hit", new Highlight(...ranges));
  };
  let last = "";
  const find = () => {
    const word = box.value.trim().toLowerCase();
    if (word === last) return;
    last = word;
    let total = 0, found = 0;
    for (const s of steps) {
      const n = word ? count(textOf(s), word) : 0;
      s.classList.toggle("gone", Boolean(word) && !n);
      if (n) s.dataset.hits = n; else delete s.dataset.hits;
      total += n;
      found += n > 0;
    }
    const few = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
    hits.textContent = word ? `${few(total, "hit")} in ${found.toLocaleString("en")} of ${few(steps.length, "step")}` : "";
    paint(word);
  };
  let waiting = 0;
  box.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(find, 120); });
  const openHit = (step) => {
    go(step, true);
    for (const inner of step.querySelectorAll("details")) if (inner.textContent.toLowerCase().includes(last)) inner.open = true;
  };
  let at = -1;
  box.addEventListener("keydown", (e) => {
    if (e.key === "Enter") {
      e.preventDefault();
      find();
      const list = shown().filter((s) => s.dataset.hits);
      if (!list.length) return;
      at = (at + (e.shiftKey ? -1 : 1) + list.length) % list.length;
      openHit(list[at]);
      box.focus({ preventScroll: true });
    } else if (e.key === "Escape") {
      box.value = "";
      find();
      box.blur();
    } else at = -1;
  });

  // -- copying: a button at each text of what is open, and one for the address of a step
  const copied = async (button, text) => {
    const label = button.dataset.label;
    try {
      if (navigator.clipboard) await navigator.clipboard.writeText(text);
      else throw new Error("no clipboard");
    } catch {  // a page from a file may not have the right to
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      button.focus();
    }
    button.dataset.label = "Copied";
    setTimeout(() => { button.dataset.label = label; }, 1200);
  };
  const button = (label, said, text) => {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "copy";
    made.dataset.label = label;  // shown by the style sheet: a search for "copy" is not to find it
    made.setAttribute("aria-label", said);
    made.addEventListener("click", () => copied(made, text()));
    return made;
  };
  const address = (step) => location.href.split("#")[0] + "#" + step.id;
  const main = get("main");
  const equip = (place) => {
    if (place.dataset.copies) return;
    place.dataset.copies = "yes";
    for (const block of place.querySelectorAll(".block")) {
      const texts = [...block.querySelectorAll(":scope > pre, :scope > .span > pre")], label = block.querySelector(":scope > h3, :scope > .label");
      if (!texts.length || (block.closest("details, .head") || main) !== place) continue;
      const name = label ? label.textContent : "this text";
      block.append(button("Copy", `Copy: ${name}`, () => texts.map((t) => t.textContent).join("\n")));
    }
    if (place !== main) for (const text of place.querySelectorAll("pre")) if (text.scrollHeight > text.clientHeight) text.tabIndex = 0;  // to be scrolled by keys
    const step = place.parentElement, body = place.querySelector(":scope > .body");
    if (body && step.id) {
      const line = document.createElement("p");
      line.className = "small ways";
      line.append(button("Copy link", "Copy a link to this step", () => address(step)));
      const more = body.querySelector(":scope > .prompt");
      if (more) line.append(more.querySelector("a"));
      if (more) more.remove();
      body.append(line);
    }
  };
  document.addEventListener("toggle", (e) => { if (e.target.open) equip(e.target); }, true);
  for (const place of [main, ...document.querySelectorAll(".head, details[open]")]) equip(place);

  // -- keys; those of ways to other pages where there are such
  const onStep = (by) => (e) => e.target.matches(".step > details > summary") && move(by);
  const follow = (id) => () => { const link = get(id); if (!link || link.hidden) return false; location.href = link.href; };
  onKeys({
    j: () => move(1), k: () => move(-1), ArrowDown: onStep(1), ArrowUp: onStep(-1),
    ArrowLeft: follow("before"), "[": follow("before"), ArrowRight: follow("after"), "]": follow("after"), u: follow("up"),
    e: () => move(1, (s) => s.classList.contains("failed")), E: () => move(-1, (s) => s.classList.contains("failed")),
    g: () => { const list = shown(); if (list.length) go(list[0]); }, G: () => { const list = shown(); if (list.length) go(list[list.length - 1]); },
    o: all, y: () => { const s = steps[current()]; if (s && s.id) { folded(s).open = true; equip(folded(s)); s.querySelector(".ways .copy").click(); } },
    "/": () => { box.focus(); box.select(); },
  });
  get("fold").addEventListener("click", all);

  // -- what the pointer is over in a chart
  for (const chart of document.querySelectorAll(".chart")) {
    const said = chart.querySelector(".readout"), svg = chart.querySelector(".bars"), top = Number(svg.dataset.top);
    svg.addEventListener("pointermove", (e) => {
      const link = e.target.closest("a");
      if (!link) return;
      const [name, ...parts] = link.querySelector("title").textContent.split("\n");
      const frame = svg.getBoundingClientRect();
      const value = top * (frame.bottom - e.clientY) / frame.height;
      let sum = 0, over = "";
      for (const part of parts.reverse()) {
        sum += Number(part.slice(part.lastIndexOf(": ") + 2).replaceAll(",", ""));
        if (value <= sum) { over = part; break; }
      }
      said.textContent = over ? `${name} — ${over}` : name;
    });
    svg.addEventListener("pointerleave", () => { said.textContent = ""; });
  }

  if (location.hash) jump();
})();
