(() => {
  "use strict";

  // -- going to a section opens it
  const jump = () => {
    const head = location.hash.length > 1 && get(location.hash.slice(1));
    if (!head) return;
    const part = head.closest("details");
    if (part) part.open = true;
    head.focus({ preventScroll: true });
    head.scrollIntoView({ block: "start" });
  };
  addEventListener("hashchange", jump);
  jump();
  for (const link of document.querySelectorAll(".contents a")) {  // a second click on the same link changes no address
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
    find();  // a browser that goes back fills in what was typed before
  }
})();
