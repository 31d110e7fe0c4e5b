
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || document.getElementById("keys").open || e.target.matches("input, textarea")) return;
  const link = document.getElementById({ ArrowLeft: "before", "[": "before", ArrowRight: "after", "]": "after", u: "up" }[e.key]);
  if (!link) return;
  e.preventDefault();
  location.href = link.href;
});
