"""JavaScript that lists the texts of a page without enough contrast (4.5 to 1) to what is behind them."""

from __future__ import annotations

CONTRAST = """(() => {
  const light = (c) => c.map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const parts = (text) => { const n = text.match(/[\\d.]+/g).map(Number);
    return text.startsWith('color(') ? n.map(v => v * 255) : n; };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > .5) return c.slice(0, 3); } return [255, 255, 255]; };
  document.querySelectorAll('details').forEach(d => d.open = true);
  const poor = new Set();
  for (const e of document.querySelectorAll('main *, .bar *')) {
    if (e.closest('svg') || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const [a, b] = [light(parts(getComputedStyle(e).color).slice(0, 3)), light(behind(e))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) poor.add(`${e.tagName}.${e.className}: ${ratio.toFixed(2)}`);
  }
  return [...poor]; })()"""
