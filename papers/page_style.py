"""How the gallery looks beside what all pages have, and how it filters."""

from __future__ import annotations

CSS = """
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(310px, 1fr));
  gap: 14px; }
.card { border: 1px solid var(--line); border-radius: 8px; padding: 4px 16px;
  background: var(--panel); }
.card h2 { border: 0; margin: 10px 0 4px; }
.card p { margin: 6px 0; font-size: 14px; }
.counts { font-size: 14px; } .counts span { font-weight: 600; }
.filter { margin: 14px 0; padding: 8px 12px; background: var(--panel);
  border-radius: 8px; font-size: 14px; }
.filter label { margin-left: 14px; cursor: pointer; white-space: nowrap; }
.filter span { font-weight: 600; }
.illustration, .not-run { color: var(--soft); }
.exhibit { border-top: 1px solid var(--line); padding: 4px 0 10px; margin-top: 22px;
  scroll-margin-top: 90px; }
.exhibit h3 { margin: 14px 0 6px; font-size: 17px; }
.exhibit[data-verdict=illustration] { margin-top: 8px; padding: 0; }
.exhibit[data-verdict=illustration] > * { display: inline; font-size: 14px; }
.exhibit .title { font-weight: 400; }
.exhibit p { margin: 6px 0; } p.note { font-size: 13.5px; max-width: 90ch; }
.badge { font-size: 12px; font-weight: 600; border: 1px solid currentColor;
  border-radius: 10px; padding: 1px 8px; margin-right: 6px; vertical-align: 2px; }
.exhibit table { width: 100%; }
.exhibit td { min-width: 70px; } .exhibit td:last-child { min-width: 0; }
td.short { white-space: nowrap; } td.short:first-child { white-space: normal; }
ol.note { margin: 6px 0; padding-left: 24px; font-size: 13.5px; max-width: 90ch; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(430px, 1fr));
  gap: 2px 18px; }
.figures > div { min-width: 0; }
table.index { width: 100%; } table.index td { padding-right: 14px; }
nav { max-height: 92px; overflow-y: auto; gap: 2px 12px; }
nav a { font-size: 13px; }
[hidden] { display: none !important; }
@media (max-width: 520px) { .figures { grid-template-columns: 1fr; } }
@media print { .filter { display: none; } .exhibit { break-inside: auto; }
  .exhibit h3 { break-after: avoid; } }
"""

FILTER = """
const boxes = [...document.querySelectorAll('.filter input')];
const marked = [...document.querySelectorAll('[data-verdict]')];
function choose() {
  const wanted = new Set(boxes.filter(b => b.checked).map(b => b.value));
  marked.forEach(e => { e.hidden = !wanted.has(e.dataset.verdict); });
}
boxes.forEach(box => box.addEventListener('change', choose));
addEventListener('pageshow', choose);
"""
