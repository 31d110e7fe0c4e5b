
(() => {
  "use strict";
  const around = document.querySelector(".around"), id = around.dataset.id;
  const stored = (name) => { try { return sessionStorage.getItem(name); } catch { return null; } };
  const way = (link, to) => { link.hidden = !to; if (to) link.href = `${to}.html`; };

  // -- previous and next as the table was sorted and filtered when it was left
  try {
    const order = JSON.parse(stored("rlm-loop-order") || "[]"), here = order.indexOf(id);
    if (here >= 0) { way(get("before"), order[here - 1]); way(get("after"), order[here + 1]); }
  } catch { /* the order of the folder */ }
  const query = stored("rlm-loop-query");
  if (query) get("up").href += `?${query}`;

  // -- a run that has not ended
  if (around.dataset.running !== undefined) {
    let tag = null;
    setInterval(async () => {
      if (document.hidden || get("keys").open || get("filter").value) return;
      try {
        const said = await fetch(location.pathname, { method: "HEAD", cache: "no-store" });
        const now = said.headers.get("ETag");
        if (tag === null) tag = now; else if (said.ok && now !== tag) location.reload();
      } catch { /* the server has ended; what is shown stays */ }
    }, 2000);
  }
})();
