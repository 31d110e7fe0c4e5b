
(() => {
  "use strict";
  const still = document.body.dataset.still !== undefined;  // a file: there is no server to ask
  const CHUNK = 200, FACETS = ["study", "arm", "model", "suite", "state", "stop"], BOXES = ["q", "min", "max"];
  const COLUMNS = [  // field, heading, whether it is a number, and what it says
    ["task", "Task"], ["state", "Score"], ["arm", "Arm"], ["suite", "Suite"], ["model", "Model"], ["study", "Study"],
    ["seed", "Seed", true], ["stop", "Stop"], ["steps", "Steps", true], ["tokens", "Tokens", true],
    ["seconds", "Seconds", true], ["cost", "Cost", true], ["answer", "Answer"], ["expected", "Expected"],
  ];
  const KINDS = { resolved: "ok", "not resolved": "bad", crashed: "bad", running: "open" };
  const ORDER = ["running", "crashed", "not resolved", "not judged", "no score", "resolved"];
  let rows = [], shown = [], version = 0, limit = CHUNK, notes = [], fresh = new Set();
  const at = new Map();

  // -- rows
  const take = (data) => {
    const known = new Set(rows.map((r) => r.id));
    rows = data.rows.map((cells) => {
      const row = {};
      data.fields.forEach((name, i) => { row[name] = cells[i]; });
      row.tokens = row.input === null && row.output === null ? null : (row.input || 0) + (row.output || 0);
      row.all = [row.task, row.arm, row.model, row.suite, row.study, row.stop, row.state, row.answer, row.expected].join("\n").toLowerCase();
      return row;
    });
    fresh = new Set(known.size ? rows.filter((r) => !known.has(r.id)).map((r) => r.id) : []);
    at.clear();
    for (const row of rows) at.set(row.id, row);
    version = data.version;
    notes = data.notes;
    facets();
  };
  const values = (name) => [...new Set(rows.map((r) => r[name]).filter((v) => v !== null && v !== ""))];
  const varies = (name) => new Set(rows.map((r) => r[name] ?? "")).size > 1;
  const facets = () => {
    for (const name of FACETS) {
      const box = get(name), kept = box.value;
      const there = values(name).sort((a, b) => String(a).localeCompare(String(b)));
      if (kept && !there.includes(kept)) there.push(kept);
      box.replaceChildren(new Option("all", ""), ...there.map((v) => new Option(v, v)));
      box.value = kept;
      get(`for-${name}`).hidden = there.length < 2 && !kept;
    }
  };

  // -- what the address says
  const state = { sort: "" };
  const fromAddress = () => {
    const said = new URLSearchParams(location.search);
    for (const name of FACETS) {
      const value = said.get(name) || "";
      if (value && ![...get(name).options].some((o) => o.value === value)) get(name).add(new Option(value, value));
      get(name).value = value;
      if (value) get(`for-${name}`).hidden = false;
    }
    for (const name of BOXES) get(name).value = said.get(name) || "";
    state.sort = said.get("sort") || "";
    limit = CHUNK;
  };
  const query = () => {
    const said = new URLSearchParams();
    for (const name of [...FACETS, ...BOXES]) { const v = get(name).value.trim(); if (v) said.set(name, v); }
    if (state.sort) said.set("sort", state.sort);
    return said.toString();
  };
  const toAddress = () => {
    const said = query();
    history.replaceState(null, "", said ? `?${said}` : location.pathname);
  };

  // -- filter and sort
  const figure = (text) => { const n = parseFloat(text.replaceAll(/[\s,_]/g, "")); return Number.isFinite(n) ? n * (/k$/i.test(text.trim()) ? 1e3 : /m$/i.test(text.trim()) ? 1e6 : 1) : null; };
  const wanted = () => {
    const words = get("q").value.toLowerCase().split(/\s+/).filter(Boolean);
    const least = figure(get("min").value), most = figure(get("max").value);
    const set = FACETS.filter((name) => get(name).value).map((name) => [name, get(name).value]);
    return rows.filter((r) => set.every(([name, value]) => r[name] === value)
      && words.every((w) => r.all.includes(w))
      && (least === null || (r.tokens !== null && r.tokens >= least))
      && (most === null || (r.tokens !== null && r.tokens <= most)));
  };
  const collator = new Intl.Collator("en", { numeric: true });
  const sorted = (list) => {
    if (!state.sort) return list;
    const down = state.sort.startsWith("-"), name = state.sort.replace("-", "");
    const value = (r) => name === "state" ? ORDER.indexOf(r.state) : r[name];
    return [...list].sort((a, b) => {
      const x = value(a), y = value(b);
      const none = (v) => v === null || v === undefined || v === "";
      if (none(x) || none(y)) return none(x) - none(y);
      const order = typeof x === "number" && typeof y === "number" ? x - y : collator.compare(x, y);
      return down ? -order : order;
    });
  };

  // -- drawing
  const number = (v, digits) => v === null || v === undefined ? "" : Number(v).toLocaleString("en", { maximumFractionDigits: digits });
  const cell = {
    state: (td, r) => {
      const mark = document.createElement("span");
      mark.className = `mark ${KINDS[r.state] || "warn"}`;
      mark.textContent = r.state + (r.value !== null && r.value !== 0 && r.value !== 1 ? ` ${number(r.value, 2)}` : "");
      td.append(mark);
    },
    task: (td, r) => {
      const link = document.createElement("a");
      link.href = `e/${r.id}.html`;
      link.textContent = r.task || "a run";
      td.append(link);
    },
    tokens: (td, r) => { td.textContent = number(r.tokens, 0); td.title = `${number(r.input, 0) || "?"} in, ${number(r.output, 0) || "?"} out`; },
    seconds: (td, r) => { td.textContent = number(r.seconds, 1); },
    cost: (td, r) => { td.textContent = r.cost ? number(r.cost, 4) : ""; },
    answer: (td, r) => { td.textContent = r.answer || ""; td.title = r.answer || ""; },
    expected: (td, r) => { td.textContent = r.expected || ""; },
  };
  const columns = () => COLUMNS.filter(([name]) => ["task", "state", "arm", "steps", "tokens", "stop"].includes(name) || (name === "cost" ? rows.some((r) => r.cost) : ["study", "model", "suite", "seed"].includes(name) ? varies(name) : rows.some((r) => r[name] !== null && r[name] !== "")));
  const line = (r, there) => {
    const tr = document.createElement("tr");
    tr.id = r.id;
    tr.tabIndex = -1;
    if (fresh.has(r.id)) tr.className = "new";
    for (const [name, , numeric] of there) {
      const td = document.createElement("td");
      td.className = numeric ? `${name} n` : name;
      if (cell[name]) cell[name](td, r); else td.textContent = r[name] ?? "";
      tr.append(td);
    }
    return tr;
  };
  const heads = (there) => {
    const list = there.map(([name, label, numeric]) => {
      const th = document.createElement("th"), button = document.createElement("button");
      th.scope = "col";
      const on = state.sort.replace("-", "") === name, down = state.sort.startsWith("-");
      if (on) th.setAttribute("aria-sort", down ? "descending" : "ascending");
      if (numeric) th.className = "n";
      button.type = "button";
      button.dataset.sort = name;
      button.textContent = label + (on ? down ? " ↓" : " ↑" : "");
      th.append(button);
      return th;
    });
    get("heads").replaceChildren(...list);
  };
  const draw = () => {
    const here = document.activeElement.closest("#rows tr")?.id;
    const there = columns();
    shown = sorted(wanted());
    heads(there);
    get("rows").replaceChildren(...shown.slice(0, limit).map((r) => line(r, there)));
    get("more").hidden = shown.length <= limit;
    get("count").textContent = shown.length === rows.length ? `${number(rows.length)} episode${rows.length === 1 ? "" : "s"}` : `${number(shown.length)} of ${number(rows.length)} episodes`;
    get("summary").textContent = summary();
    get("notes").replaceChildren(...notes.map((text) => { const p = document.createElement("p"); p.className = "warn"; p.textContent = text; return p; }));
    const none = get("none");
    none.hidden = shown.length > 0;
    none.textContent = rows.length ? "No episode is like that. Reset (Esc) shows all." : "There is no run here yet. This page shows the first one as soon as it is written: run a study with --out in this folder, or an agent with trace=\"…/run.jsonl\".";
    for (const name of [...FACETS, ...BOXES]) get(name).classList.toggle("on", Boolean(get(name).value.trim()));
    if (here) get(here)?.focus({ preventScroll: true });
    remember();
  };
  const summary = () => {
    const said = [], judged = shown.filter((r) => r.state === "resolved" || r.state === "not resolved" || r.state === "crashed");
    if (judged.length) {
      const right = judged.filter((r) => r.state === "resolved").length;
      said.push(`${number(right)} of ${number(judged.length)} resolved (${number(100 * right / judged.length, 0)} %)`);
    }
    const running = shown.filter((r) => r.state === "running").length;
    if (running) said.push(`${number(running)} without an end, running or broken off`);
    const tokens = shown.map((r) => r.tokens).filter((v) => v !== null);
    if (tokens.length) said.push(`${number(tokens.reduce((a, b) => a + b, 0) / tokens.length, 0)} tokens on average`);
    return said.join(" · ");
  };
  const remember = () => {  // so that an episode knows the next one, and the way back
    try {
      sessionStorage.setItem("rlm-loop-order", JSON.stringify(shown.map((r) => r.id)));
      sessionStorage.setItem("rlm-loop-query", query());
    } catch { /* no storage: the order of the folder it is */ }
  };

  // -- keys and pointers
  const lines = () => [...get("rows").children];
  const go = (tr) => { if (tr) { tr.focus({ preventScroll: true }); tr.scrollIntoView({ block: "nearest" }); } };
  const current = () => document.activeElement.closest("#rows tr");
  const more = () => { const there = columns(), from = limit; limit += CHUNK; get("rows").append(...shown.slice(from, limit).map((r) => line(r, there))); get("more").hidden = shown.length <= limit; };
  const move = (by) => {
    const here = current();
    if (!here) return go(lines()[0]);
    if (by > 0 && !here.nextElementSibling && shown.length > limit) more();
    return go(by > 0 ? here.nextElementSibling : here.previousElementSibling);
  };
  const copy = async () => {
    toAddress();
    try { await navigator.clipboard.writeText(location.href); get("link").textContent = "Copied"; }
    catch { get("link").textContent = "It is in the address bar"; }
    setTimeout(() => { get("link").textContent = "Copy link"; }, 1500);
  };
  const reset = () => {
    for (const name of [...FACETS, ...BOXES]) get(name).value = "";
    state.sort = "";
    changed();
  };
  onKeys({
    j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1),
    g: () => go(lines()[0]), G: () => { while (shown.length > limit) more(); go(lines().at(-1)); },
    y: copy, Escape: reset,
    Enter: (e) => e.target.matches("#rows tr") && e.target.querySelector("a").click(),
    "/": () => { get("q").focus(); get("q").select(); },
  });
  get("filters").addEventListener("keydown", (e) => { if (e.key === "Escape") { e.preventDefault(); e.target.blur(); } });
  get("rows").addEventListener("click", (e) => {
    const tr = e.target.closest("tr");
    if (!tr) return;
    if (e.target.closest("a") || String(getSelection())) return;
    tr.querySelector("a").click();
  });
  get("heads").addEventListener("click", (e) => {
    const name = e.target.closest("button")?.dataset.sort;
    if (!name) return;
    const numeric = COLUMNS.find((c) => c[0] === name)[2];
    const ways = numeric ? [`-${name}`, name, ""] : [name, `-${name}`, ""];
    state.sort = ways[(ways.indexOf(state.sort) + 1) % 3];
    changed();
    get("heads").querySelector(`[data-sort="${name}"]`).focus();
  });
  const changed = () => { limit = CHUNK; toAddress(); draw(); };
  let waiting = 0;
  get("filters").addEventListener("input", (e) => {
    clearTimeout(waiting);
    waiting = setTimeout(changed, e.target.matches("select") ? 0 : 120);
  });
  get("filters").addEventListener("submit", (e) => e.preventDefault());
  get("more").addEventListener("click", more);
  new IntersectionObserver((seen) => { if (seen[0].isIntersecting && shown.length > limit) more(); }, { rootMargin: "600px" }).observe(get("more"));
  get("reset").addEventListener("click", reset);
  get("link").addEventListener("click", copy);
  addEventListener("popstate", () => { fromAddress(); draw(); });

  // -- what is new on the disk
  let tag = null;
  const poll = async () => {
    if (document.hidden) return;
    try {
      const said = await fetch("rows.json", tag ? { headers: { "If-None-Match": tag }, cache: "no-store" } : { cache: "no-store" });
      if (said.status !== 200) return;
      tag = said.headers.get("ETag");
      const data = await said.json();
      if (data.version === version) return;
      take(data);
      draw();
    } catch { /* the server has ended; what is shown stays */ }
  };

  take(JSON.parse(get("data").textContent));
  tag = `"${version}"`;
  fromAddress();
  draw();
  if (!still) setInterval(poll, 2000);
})();
