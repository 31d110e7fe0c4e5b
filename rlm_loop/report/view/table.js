
(() => {
  "use strict";
  const CHUNK = 200, FACETS = ["study", "arm", "model", "suite", "state", "stop"], BOXES = ["q", ...FACETS];
  const COLUMNS = [  // field, heading, whether it is a number
    ["task", "Task"], ["state", "Score"], ["answer", "Answer"], ["expected", "Expected"], ["arm", "Arm"],
    ["suite", "Suite"], ["model", "Model"], ["study", "Study"], ["seed", "Seed", true], ["stop", "Stop"],
    ["steps", "Steps", true], ["tokens", "Tokens", true], ["seconds", "Seconds", true], ["cost", "Cost", true],
  ];
  const KINDS = { resolved: "ok", "not resolved": "bad", crashed: "bad", running: "open" };
  const FEW = ["study", "model", "suite", "seed", "cost"];  // columns that say nothing where all rows are alike
  const asked = new URLSearchParams(location.search);  // the address keeps what is filtered and sorted
  let rows = [], limit = CHUNK, notes = [], sort = asked.get("sort") || "";
  for (const name of BOXES) if (asked.get(name)) {
    if (name !== "q") get(name).add(new Option(asked.get(name)));
    get(name).value = asked.get(name);
  }

  const take = (data) => {
    rows = data.rows.map((cells) => {
      const row = Object.fromEntries(data.fields.map((name, i) => [name, cells[i] ?? ""]));
      row.tokens = row.input === "" && row.output === "" ? "" : (row.input || 0) + (row.output || 0);
      row.words = [row.task, row.answer, row.expected, ...FACETS.map((name) => row[name])].join("\n").toLowerCase();
      return row;
    });
    notes = data.notes;
    for (const name of FACETS) {
      const box = get(name), chosen = box.value;
      const values = [...new Set([...rows.map((r) => r[name]), chosen])].filter((v) => v !== "").sort();
      box.replaceChildren(new Option("all", ""), ...values.map((v) => new Option(v)));
      box.value = chosen;
      get(`for-${name}`).hidden = values.length < 2 && !chosen;
    }
  };

  // -- filter and sort
  const matching = () => {
    const words = get("q").value.toLowerCase().split(/\s+/);
    const set = FACETS.filter((name) => get(name).value);
    return rows.filter((r) => set.every((name) => String(r[name]) === get(name).value) && words.every((w) => r.words.includes(w)));
  };
  const collator = new Intl.Collator("en", { numeric: true });
  const sorted = (list) => {
    const name = sort.replace("-", ""), by = sort.startsWith("-") ? -1 : 1;
    if (!sort) return list;
    return [...list].sort(({ [name]: x }, { [name]: y }) => {
      if (x === "" || y === "") return (x === "") - (y === "");
      return by * (typeof x === "number" && typeof y === "number" ? x - y : collator.compare(x, y));
    });
  };

  // -- drawing
  const number = (v, digits = 0) => v === "" ? "" : Number(v).toLocaleString("en", { maximumFractionDigits: digits });
  const made = (name, fields) => Object.assign(document.createElement(name), fields);
  const CELL = {
    state: (td, r) => td.append(made("span", {
      className: `mark ${KINDS[r.state] || "warn"}`,
      textContent: r.state + (r.value === "" || r.value === 0 || r.value === 1 ? "" : ` ${number(r.value, 2)}`),
    })),
    task: (td, r) => td.append(made("a", { href: `e/${r.id}.html`, textContent: r.task || "a run" })),
    tokens: (td, r) => { td.textContent = number(r.tokens); td.title = `${number(r.input)} in, ${number(r.output)} out`; },
    seconds: (td, r) => { td.textContent = number(r.seconds, 1); },
    cost: (td, r) => { td.textContent = number(r.cost, 4); },
  };
  const line = (r, columns) => {
    const tr = made("tr", { id: r.id });
    for (const [name, , numeric] of columns) {
      const td = made("td", { className: numeric ? `${name} n` : name });
      if (CELL[name]) CELL[name](td, r); else td.textContent = r[name];
      tr.append(td);
    }
    return tr;
  };
  const head = ([name, label, numeric]) => {
    const on = sort.replace("-", "") === name, down = sort.startsWith("-");
    const button = made("button", { type: "button", textContent: label + (on ? down ? " ↓" : " ↑" : "") });
    button.dataset.sort = name;
    const th = made("th", { scope: "col", className: numeric ? "n" : "" });
    if (on) th.ariaSort = down ? "descending" : "ascending";
    th.append(button);
    return th;
  };
  const draw = () => {
    const shown = sorted(matching()), right = shown.filter((r) => r.state === "resolved").length;
    const columns = COLUMNS.filter(([name]) => name === "task" || new Set(rows.map((r) => r[name])).size > FEW.includes(name)
      && rows.some((r) => r[name] !== ""));
    get("heads").replaceChildren(...columns.map(head));
    get("rows").replaceChildren(...shown.slice(0, limit).map((r) => line(r, columns)));
    get("more").hidden = shown.length <= limit;
    get("count").textContent = `${shown.length === rows.length ? "" : `${number(shown.length)} of `}${number(rows.length)} episode${rows.length === 1 ? "" : "s"}${right ? `, ${number(right)} resolved` : ""}`;
    get("notes").replaceChildren(...notes.map((textContent) => made("p", { className: "warn", textContent })));
    get("none").hidden = shown.length > 0;
    get("none").textContent = rows.length ? "No episode is like that. Reset shows all." : "There is no run here yet. This page shows the first one as soon as it is written: run a study with --out in this folder, or an agent with trace=\"…/run.jsonl\".";
  };
  const changed = () => {
    const kept = new URLSearchParams(BOXES.map((name) => [name, get(name).value.trim()]).filter(([, v]) => v));
    if (sort) kept.set("sort", sort);
    history.replaceState(null, "", kept.size ? `?${kept}` : location.pathname);
    limit = CHUNK;
    draw();
  };

  // -- what is chosen
  const reset = () => {
    for (const name of BOXES) get(name).value = "";
    sort = "";
    changed();
  };
  get("filters").addEventListener("input", changed);
  get("filters").addEventListener("submit", (e) => e.preventDefault());
  get("heads").addEventListener("click", (e) => {
    const name = e.target.closest("button")?.dataset.sort;
    if (!name) return;
    const numeric = COLUMNS.find((c) => c[0] === name)[2], ways = numeric ? [`-${name}`, name, ""] : [name, `-${name}`, ""];
    sort = ways[(ways.indexOf(sort) + 1) % 3];
    changed();
    get("heads").querySelector(`[data-sort="${name}"]`).focus();
  });
  get("more").addEventListener("click", () => { limit += CHUNK; draw(); });
  get("reset").addEventListener("click", reset);
  watch("rows.json", "", async (answer) => { take(await answer.json()); draw(); });
})();
