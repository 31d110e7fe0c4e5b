
(() => {
  "use strict";
  const CHUNK = 200, FACETS = ["study", "arm", "model", "suite", "state", "stop"], BOXES = ["q", ...FACETS];
  const COLUMNS = [  // field, heading, whether it is a number
    ["task", "Task"], ["state", "Score"], ["arm", "Arm"], ["suite", "Suite"], ["model", "Model"], ["study", "Study"],
    ["seed", "Seed", true], ["stop", "Stop"], ["steps", "Steps", true], ["tokens", "Tokens", true],
    ["seconds", "Seconds", true], ["cost", "Cost", true], ["answer", "Answer"], ["expected", "Expected"],
  ];
  const KINDS = { resolved: "ok", "not resolved": "bad", crashed: "bad", running: "open" };
  const ORDER = ["running", "crashed", "not resolved", "not judged", "no score", "resolved"];
  let rows = [], shown = [], version = 0, limit = CHUNK, notes = [], sort = "";

  // -- rows
  const take = (data) => {
    rows = data.rows.map((cells) => {
      const row = Object.fromEntries(data.fields.map((name, i) => [name, cells[i]]));
      row.tokens = row.input === null && row.output === null ? null : (row.input || 0) + (row.output || 0);
      row.all = [row.task, row.arm, row.model, row.suite, row.study, row.stop, row.state, row.answer, row.expected].join("\n").toLowerCase();
      return row;
    });
    ({ version, notes } = data);
    for (const name of FACETS) {
      const box = get(name), kept = box.value;
      const there = [...new Set(rows.map((r) => r[name]).filter(Boolean))].sort((a, b) => String(a).localeCompare(String(b)));
      if (kept && !there.includes(kept)) there.push(kept);
      box.replaceChildren(new Option("all", ""), ...there.map((v) => new Option(v, v)));
      box.value = kept;
      get(`for-${name}`).hidden = there.length < 2 && !kept;
    }
  };

  // -- the address keeps what is filtered and sorted
  const fromAddress = () => {
    const asked = new URLSearchParams(location.search);
    for (const name of BOXES) get(name).value = asked.get(name) || "";
    sort = asked.get("sort") || "";
  };
  const changed = () => {
    const asked = new URLSearchParams(BOXES.map((name) => [name, get(name).value.trim()]).filter(([, v]) => v));
    if (sort) asked.set("sort", sort);
    history.replaceState(null, "", asked.size ? `?${asked}` : location.pathname);
    limit = CHUNK;
    draw();
  };

  // -- filter and sort
  const wanted = () => {
    const words = get("q").value.toLowerCase().split(/\s+/).filter(Boolean);
    const set = FACETS.filter((name) => get(name).value).map((name) => [name, get(name).value]);
    return rows.filter((r) => set.every(([name, value]) => r[name] === value) && words.every((w) => r.all.includes(w)));
  };
  const collator = new Intl.Collator("en", { numeric: true });
  const sorted = (list) => {
    if (!sort) return list;
    const down = sort.startsWith("-"), name = sort.replace("-", "");
    const value = (r) => name === "state" ? ORDER.indexOf(r.state) : r[name] ?? "";
    return [...list].sort((a, b) => {
      const x = value(a), y = value(b);
      if (x === "" || y === "") return (x === "") - (y === "");
      const order = typeof x === "number" && typeof y === "number" ? x - y : collator.compare(x, y);
      return down ? -order : order;
    });
  };

  // -- drawing
  const number = (v, digits = 0) => v === null || v === undefined ? "" : Number(v).toLocaleString("en", { maximumFractionDigits: digits });
  const made = (name, fields) => Object.assign(document.createElement(name), fields);
  const cell = {
    state: (td, r) => td.append(made("span", {
      className: `mark ${KINDS[r.state] || "warn"}`,
      textContent: r.state + (r.value !== null && r.value !== 0 && r.value !== 1 ? ` ${number(r.value, 2)}` : ""),
    })),
    task: (td, r) => td.append(made("a", { href: `e/${r.id}.html`, textContent: r.task || "a run" })),
    tokens: (td, r) => { td.textContent = number(r.tokens); td.title = `${number(r.input) || "?"} in, ${number(r.output) || "?"} out`; },
    seconds: (td, r) => { td.textContent = number(r.seconds, 1); },
    cost: (td, r) => { td.textContent = r.cost ? number(r.cost, 4) : ""; },
  };
  const ALWAYS = ["task", "state", "arm", "steps", "tokens", "stop"], VARYING = ["study", "model", "suite", "seed"];
  const columns = () => COLUMNS.filter(([name]) => ALWAYS.includes(name) || (VARYING.includes(name)
    ? new Set(rows.map((r) => r[name] ?? "")).size > 1 : rows.some((r) => r[name] !== null && r[name] !== "")));
  const line = (r, there) => {
    const tr = made("tr", { id: r.id });
    for (const [name, , numeric] of there) {
      const td = made("td", { className: numeric ? `${name} n` : name });
      if (cell[name]) cell[name](td, r); else td.textContent = r[name] ?? "";
      tr.append(td);
    }
    return tr;
  };
  const head = ([name, label, numeric]) => {
    const th = made("th", { scope: "col", className: numeric ? "n" : "" });
    const on = sort.replace("-", "") === name, down = sort.startsWith("-");
    if (on) th.setAttribute("aria-sort", down ? "descending" : "ascending");
    const button = made("button", { type: "button", textContent: label + (on ? down ? " ↓" : " ↑" : "") });
    button.dataset.sort = name;
    th.append(button);
    return th;
  };
  const draw = () => {
    const there = columns();
    shown = sorted(wanted());
    get("heads").replaceChildren(...there.map(head));
    get("rows").replaceChildren(...shown.slice(0, limit).map((r) => line(r, there)));
    get("more").hidden = shown.length <= limit;
    const right = shown.filter((r) => r.state === "resolved").length;
    get("count").textContent = `${shown.length === rows.length ? "" : `${number(shown.length)} of `}${number(rows.length)} episode${rows.length === 1 ? "" : "s"}${right ? `, ${number(right)} resolved` : ""}`;
    get("notes").replaceChildren(...notes.map((textContent) => made("p", { className: "warn", textContent })));
    get("none").hidden = shown.length > 0;
    get("none").textContent = rows.length ? "No episode is like that. Reset (Esc) shows all." : "There is no run here yet. This page shows the first one as soon as it is written: run a study with --out in this folder, or an agent with trace=\"…/run.jsonl\".";
  };

  // -- keys and pointers
  const reset = () => {
    for (const name of BOXES) get(name).value = "";
    sort = "";
    changed();
  };
  onKeys({ Escape: reset, "/": () => { get("q").focus(); get("q").select(); } });
  get("filters").addEventListener("keydown", (e) => { if (e.key === "Escape") { e.preventDefault(); e.target.blur(); } });
  get("filters").addEventListener("input", changed);
  get("filters").addEventListener("submit", (e) => e.preventDefault());
  get("heads").addEventListener("click", (e) => {
    const name = e.target.closest("button")?.dataset.sort;
    if (!name) return;
    const ways = COLUMNS.find((c) => c[0] === name)[2] ? [`-${name}`, name, ""] : [name, `-${name}`, ""];
    sort = ways[(ways.indexOf(sort) + 1) % 3];
    changed();
    get("heads").querySelector(`[data-sort="${name}"]`).focus();
  });
  get("more").addEventListener("click", () => { limit += CHUNK; draw(); });
  get("reset").addEventListener("click", reset);
  addEventListener("popstate", () => { fromAddress(); draw(); });

  // -- what is new on the disk
  setInterval(async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch("rows.json", { headers: { "If-None-Match": `"${version}"` }, cache: "no-store" });
      if (answer.status !== 200) return;
      take(await answer.json());
      draw();
    } catch { /* the server has ended; what is shown stays */ }
  }, 2000);

  take(JSON.parse(get("data").textContent));
  fromAddress();
  draw();
})();
