const boxes = [...document.querySelectorAll('.filter input')];
const marked = [...document.querySelectorAll('[data-verdict]')];
function apply() {
  const selected = new Set(boxes.filter(b => b.checked).map(b => b.value));
  marked.forEach(e => { e.hidden = !selected.has(e.dataset.verdict); });
}
boxes.forEach(box => box.addEventListener('change', apply));
addEventListener('pageshow', apply);
