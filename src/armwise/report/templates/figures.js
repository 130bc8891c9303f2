const figures = JSON.parse(document.getElementById('figures').textContent);
const elements = [...document.querySelectorAll('.figure')];
// Whole multiples of a power of ten; logarithms of what a logarithmic axis shows.
function inFull({ power, whole }, isLog) {
  // Divided, not multiplied by 0.1: 3/10 is 0.3.
  const times = power < 0 ? k => k / 10 ** -power : k => k * 10 ** power;
  return whole.map(k => k === null ? null : isLog ? 10 ** times(k) : times(k));
}
figures.filter(f => f.curves).forEach(f => f.curves.forEach((curve, i) => {
  // None: the same as of the curve before.
  curve.x = curve.x ? inFull(curve.x, f.x_log) : f.curves[i - 1].x;
  curve.y = inFull(curve.y, f.log);
}));

// Axes.
function ticks(low, high, most) {
  const rough = (high - low) / Math.max(most, 1);
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * [1, 2, 5, 10].find(k => k * unit >= rough * (1 - 1e-9));
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, i) => (first + i) * step);
}
function decades(low, high, most) {
  const every = Math.max(1, Math.ceil((high - low) / Math.max(most, 1)));
  const first = Math.ceil(low - 1e-9), shown = [];
  for (let k = first; k <= high + 1e-9; k += every) shown.push(k);
  return shown;
}
// Powers of ten in full where they are short.
const power = k => k >= -3 && k <= 4 ? String(10 ** k) : `10${raised(k)}`;
const raised = k => [...String(k)].map(c => c === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[c]).join('');
function label(value) {
  const size = Math.abs(value);
  if (size && (size >= 1e5 || size < 1e-3)) {
    const k = Math.floor(Math.log10(size) + 1e-9);
    return `${Number((value / 10 ** k).toPrecision(3))}·10${raised(k)}`;
  }
  return String(Number(value.toPrecision(4))).replace('-', '−');
}
// The part of an axis its values take, a little wider; logarithms on log axes.
function extent(values, isLog) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value === null || (isLog && value <= 0)) continue;
    const v = isLog ? Math.log10(value) : value;
    if (v < low) low = v;
    if (v > high) high = v;
  }
  if (low > high) return [0, 1];
  const spare = (high - low || Math.abs(high) || 1) * 0.05;
  return [low - spare, high + spare];
}

// Elements.
function add(parent, name, attributes = {}, text = '') {
  const isDrawn = name === 'svg' || parent.namespaceURI.endsWith('svg');
  const child = isDrawn ? document.createElementNS('http://www.w3.org/2000/svg', name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) child.setAttribute(key, value);
  child.textContent = text;  // never markup: names come from files
  parent.append(child);
  return child;
}
function look(figure, curve) {
  if (curve.role !== 'series') return curve.role;
  const alike = figure.curves.filter(c => c.role === 'series');
  return `series-${alike.indexOf(curve) % 6}`;
}

// One pair of axes: the box [left, top, right, bottom] in pixels, and its curves.
function panel(svg, figure, curves, box, xs, name, yLabel, hasXLabels) {
  const [left, top, right, bottom] = box;
  const inside = (x, i) => {
    const v = figure.x_log ? Math.log10(x[i]) : x[i];
    return v >= xs[0] && v <= xs[1];
  };
  const visible = curves.flatMap(c => c.role === 'level' ? c.y
    : c.y.filter((_, i) => inside(c.x, i)));
  const ys = extent(visible, figure.log);
  const px = x => left + ((figure.x_log ? Math.log10(x) : x) - xs[0])
    / (xs[1] - xs[0]) * (right - left);
  const py = y => bottom - ((figure.log ? Math.log10(y) : y) - ys[0])
    / (ys[1] - ys[0]) * (bottom - top);
  const rows = figure.log ? decades(ys[0], ys[1], (bottom - top) / 28)
    : ticks(ys[0], ys[1], (bottom - top) / 28);
  for (const v of rows) {
    const y = py(figure.log ? 10 ** v : v);
    add(svg, 'path', { class: v || figure.log ? 'grid' : 'grid zero', d: `M${left} ${y}H${right}` });
    add(svg, 'text', { class: 'tick', x: left - 6, y: y + 4, 'text-anchor': 'end' },
      figure.log ? power(v) : label(v));
  }
  const columns = figure.x_names.length ? figure.x_names.map((_, i) => i)
    : (figure.x_log ? decades : ticks)(xs[0], xs[1], (right - left) / 80);
  const room = (right - left) / Math.max(figure.x_names.length, 1);
  for (const v of columns) {
    const x = px(figure.x_log ? 10 ** v : v);
    if (x < left - 1 || x > right + 1) continue;
    add(svg, 'path', { class: 'grid', d: `M${x} ${top}V${bottom}` });
    if (!hasXLabels) continue;
    const words = figure.x_names.length ? figure.x_names[v]
      : figure.x_log ? power(v) : label(v);
    // Names that do not fit side by side are turned.
    const isTurned = figure.x_names.some(n => n.length * 7 > room);
    add(svg, 'text', { class: 'tick', x, y: bottom + 16,
      ...(isTurned ? { 'text-anchor': 'end',
        transform: `rotate(-45 ${x} ${bottom + 12})` } : { 'text-anchor': 'middle' }) },
    words);
  }
  add(svg, 'text', { class: 'axis', 'text-anchor': 'middle',
    transform: `translate(13 ${(top + bottom) / 2}) rotate(-90)` }, yLabel);
  add(add(svg, 'clipPath', { id: name }), 'rect',
    { x: left, y: top - 3, width: right - left, height: bottom - top + 6 });
  const group = add(svg, 'g', { 'clip-path': `url(#${name})` });
  for (const curve of curves) {
    const isPoints = ['printed', 'points'].includes(curve.role)
      || (figure.stems && curve.role !== 'level');
    const points = curve.y.map((y, i) => y === null || curve.x[i] === null
      || (figure.log && y <= 0) || (figure.x_log && curve.x[i] <= 0)
      ? null : [px(curve.x[i]), py(y)]);
    const kind = look(figure, curve);
    if (isPoints) {
      for (const p of points) if (p) add(group, 'circle',
        { class: `point ${kind}`, cx: p[0].toFixed(1), cy: p[1].toFixed(1),
          r: curve.role === 'points' ? 1.5 : 3.5 });
      continue;
    }
    let d = '', isDown = false;
    for (const p of points) {
      if (p) d += `${isDown ? 'L' : 'M'}${p[0].toFixed(1)} ${p[1].toFixed(1)}`;
      isDown = p !== null;
    }
    add(group, 'path', { class: `curve ${kind}`, d });
  }
}

function drawCurves(element, figure, number) {
  element.replaceChildren();
  add(element, 'div', { class: 'title' }, figure.title);
  const legend = add(element, 'div', { class: 'legend' });
  const names = [...new Set(figure.curves.map(c => c.name))];
  const keys = names.map(name => {
    const curve = figure.curves.find(c => c.name === name);
    const item = add(legend, 'span', { class: 'key' });
    add(item, 'i', { class: `${look(figure, curve)}`
      + (figure.stems || ['printed', 'points'].includes(curve.role) ? ' dot' : '') });
    add(item, 'span', {}, name);
    return [curve, add(item, 'b')];
  });
  if (names.length < 2) legend.classList.add('single');
  const where = add(legend, 'span', { class: 'where' });
  const width = element.clientWidth;
  const height = element.clientHeight - legend.offsetTop - legend.offsetHeight;
  const svg = add(element, 'svg', { class: 'main-svg', width, height,
    viewBox: `0 0 ${width} ${height}` });
  const lower = figure.curves.some(c => c.role === 'measured')
    ? figure.curves.filter(c => c.role === 'residual') : [];
  const upper = figure.curves.filter(c => !lower.includes(c));
  const room = (width - 70) / Math.max(figure.x_names.length, 1);
  const longest = Math.max(0, ...figure.x_names.map(n => n.length));
  const foot = longest * 7 > room ? Math.min(32 + longest * 4.6, height / 2) : 38;
  const left = 62, right = width - 8, bottom = height - foot;
  const xs = element.range ?? (figure.x_names.length
    ? [-0.6, figure.x_names.length - 0.4]
    : extent(figure.curves.flatMap(c => c.x), figure.x_log));
  const split = lower.length ? 6 + (bottom - 6) * 0.68 : bottom;
  panel(svg, figure, upper, [left, 6, right, split], xs, `clip-${number}`,
    figure.y_label, !lower.length);
  if (lower.length) panel(svg, { ...figure, log: false }, lower,
    [left, split + 14, right, bottom], xs, `clip-${number}-below`, 'residual', true);
  add(svg, 'text', { class: 'axis', x: (left + right) / 2, y: height - 6,
    'text-anchor': 'middle' }, figure.x_label);
  const line = add(svg, 'path', { class: 'cursor' });
  const cover = add(svg, 'rect', { class: 'cover', x: left, y: 0, width: right - left,
    height: bottom });
  if (!figure.x_names.length) cover.append(Object.assign(
    document.createElementNS(svg.namespaceURI, 'title'),
    { textContent: 'Drag to enlarge, double-click to see all.' }));
  const value = event => xs[0] + (event.clientX - svg.getBoundingClientRect().left
    - left) / (right - left) * (xs[1] - xs[0]);
  const at = v => left + (v - xs[0]) / (xs[1] - xs[0]) * (right - left);
  let start = null;
  const read = event => {
    const v = Math.min(xs[1], Math.max(xs[0], value(event)));
    line.setAttribute('d', `M${at(v)} 6V${bottom}`
      + (start === null ? '' : `M${at(start)} 6V${bottom}`));
    const x = figure.x_log ? 10 ** v : v;
    where.textContent = figure.x_names.length ? figure.x_names[Math.round(x)] ?? ''
      : `${figure.x_label}: ${label(x)}`;
    for (const [curve, text] of keys) {
      let nearest = 0;
      curve.x.forEach((c, i) => {
        if (Math.abs(c - x) < Math.abs(curve.x[nearest] - x)) nearest = i;
      });
      const y = curve.y[nearest];
      text.textContent = y === null || y === undefined ? '' : ` ${label(y)}`;
    }
  };
  const forget = () => {
    start = null;
    line.removeAttribute('d');
    where.textContent = '';
    keys.forEach(([, text]) => { text.textContent = ''; });
  };
  cover.addEventListener('pointermove', read);
  cover.addEventListener('pointerleave', forget);
  cover.addEventListener('pointerdown', event => {
    if (event.pointerType === 'mouse' && !figure.x_names.length) start = value(event);
  });
  cover.addEventListener('pointerup', event => {
    if (start === null) return;
    const range = [start, value(event)].sort((a, b) => a - b);
    start = null;
    // Less than eight pixels is a click.
    if (at(range[1]) - at(range[0]) < 8) return;
    element.range = range;
    drawCurves(element, figure, number);
  });
  cover.addEventListener('dblclick', () => {
    delete element.range;
    drawCurves(element, figure, number);
  });
}

function draw(element) {
  const number = Number(element.dataset.figure), figure = figures[number];
  element.dataset.drawn = 'yes';
  if (figure.data)  // described in Plotly's own terms
    Plotly.react(element, figure.data, figure.layout,
      { responsive: true, displaylogo: false })
      .then(() => Plotly.addFrames(element, figure.frames));
  else drawCurves(element, figure, number);
}
const visibility = new IntersectionObserver(entries => entries.forEach(entry => {
  if (entry.isIntersecting && !entry.target.dataset.drawn) draw(entry.target);
}), { rootMargin: '400px' });
elements.forEach(element => visibility.observe(element));
// Colours follow the style sheet by themselves; sizes do not.
const redraw = () => elements.filter(p => p.dataset.drawn && p.clientWidth).forEach(draw);
addEventListener('resize', redraw);
matchMedia('print').addEventListener('change', redraw);
addEventListener('beforeprint', () => {
  document.querySelectorAll('details').forEach(d => { d.open = true; });
  elements.forEach(draw);
});
addEventListener('afterprint', redraw);
