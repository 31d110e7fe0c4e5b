const get = (id) => document.getElementById(id);

const theme = (() => {  // light and dark; calling it turns from one to the other
  "use strict";
  const root = document.documentElement, button = get("theme");
  root.classList.add("js");
  const stored = (value) => {
    try {
      if (value === undefined) return localStorage.getItem("rlm-loop-theme");
      localStorage.setItem("rlm-loop-theme", value);
    } catch { /* a page opened from a file may have no storage */ }
    return null;
  };
  const wanted = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme || (wanted.matches ? "dark" : "light")) === "dark";
  const named = () => { button.textContent = dark() ? "Light" : "Dark"; };
  const chosen = stored();
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  wanted.addEventListener("change", named);
  named();
  return () => { root.dataset.theme = dark() ? "light" : "dark"; stored(root.dataset.theme); named(); };
})();
get("theme").addEventListener("click", theme);
