
// Looks every 2 s whether what an address holds is another thing than that of `tag`, and then calls `changed`.
const watch = (address, tag, changed) => {
  "use strict";
  const look = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(address, { cache: "no-cache" }), now = answer.headers.get("ETag");
      if (!answer.ok || now === tag) return;
      tag = now;
      changed(answer);
    } catch { /* the server has ended; what is shown stays */ }
  };
  setInterval(look, 2000);
  look();
};
const tagged = document.querySelector("[data-tag]");
if (tagged) watch(location.pathname, tagged.dataset.tag, () => location.reload());
