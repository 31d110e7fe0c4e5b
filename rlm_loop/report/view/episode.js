
(() => {
  "use strict";
  if (document.querySelector(".around").dataset.running === undefined) return;
  let tag = null;  // the run has not ended: the page is read again when its files have changed
  setInterval(async () => {
    if (document.hidden || get("keys").open) return;
    try {
      const answer = await fetch(location.pathname, { method: "HEAD", cache: "no-store" });
      const now = answer.headers.get("ETag");
      if (tag === null) tag = now; else if (answer.ok && now !== tag) location.reload();
    } catch { /* the server has ended; what is shown stays */ }
  }, 2000);
})();
