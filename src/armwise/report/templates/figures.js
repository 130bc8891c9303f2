const figures = JSON.parse(document.getElementById('figures').textContent);
const elements = [...document.querySelectorAll('.figure')];
const colour = name => getComputedStyle(document.documentElement)
  .getPropertyValue('--' + name).trim();
const roles = { measured: 'measured', predicted: 'predicted', residual: 'measured',
  other: 'predicted', level: 'soft', printed: 'ink' };
const widths = { measured: 3.2, predicted: 1.3, residual: 1.2, other: 1.2, level: 1,
  series: 1.6 };
const palette = ['measured', 'predicted', 'third', 'fourth', 'fifth', 'sixth'];
function hue(figure, curve) {
  const series = figure.curves.filter(c => c.role === 'series');
  const next = palette[series.indexOf(curve) % palette.length];
  return colour(curve.role === 'series' ? next : roles[curve.role]);
}
function traces(figure) {
  return figure.curves.map((curve, i) => ({ x: curve.x, y: curve.y, name: curve.name,
    type: 'scatter', connectgaps: false,
    mode: curve.role === 'printed' || (figure.stems && curve.role !== 'level')
      ? 'markers' : 'lines',
    showlegend: figure.curves.findIndex(c => c.name === curve.name) === i
      && figure.curves.length > 1,
    line: { color: hue(figure, curve), width: widths[curve.role],
      dash: curve.role === 'level' ? 'dash' : 'solid' },
    marker: { color: hue(figure, curve), size: curve.role === 'printed' ? 9 : 6,
      symbol: curve.role === 'printed' ? 'diamond-open' : 'circle' } }));
}
function layout(figure) {
  const axis = { gridcolor: colour('line'), zerolinecolor: colour('line'),
    linecolor: colour('line'), exponentformat: 'power' };
  const many = new Set(figure.curves.map(c => c.name)).size > 1;
  return { title: { text: figure.title, x: 0, xanchor: 'left', y: 1, yanchor: 'top',
      pad: { t: 6 }, font: { size: 14 } },
    margin: { l: 60, r: 10, t: many ? 50 : 32, b: 40 }, paper_bgcolor: 'rgba(0,0,0,0)',
    plot_bgcolor: 'rgba(0,0,0,0)', font: { color: colour('ink'), size: 12 },
    xaxis: { ...axis, title: { text: figure.x_label }, automargin: true,
      type: figure.x_log ? 'log' : 'linear', ...(figure.x_names.length
        ? { tickvals: figure.x_names.map((_, i) => i), ticktext: figure.x_names,
          range: [-0.6, figure.x_names.length - 0.4] }
        : {}) },
    yaxis: { ...axis, title: { text: figure.y_label }, automargin: true,
      type: figure.log ? 'log' : 'linear' },
    legend: { orientation: 'h', x: 0, xanchor: 'left', y: 1, yanchor: 'bottom' },
    hovermode: 'x unified' };
}
function draw(element) {
  const figure = figures[Number(element.dataset.figure)];
  const options = { responsive: true, displaylogo: false };
  element.dataset.drawn = 'yes';
  if (figure.data)  // described in Plotly's own terms
    Plotly.react(element, figure.data, figure.layout, options)
      .then(() => Plotly.addFrames(element, figure.frames));
  else Plotly.react(element, traces(figure), layout(figure), options);
}
const visibility = new IntersectionObserver(entries => entries.forEach(entry => {
  if (entry.isIntersecting && !entry.target.dataset.drawn) draw(entry.target);
}), { rootMargin: '400px' });
elements.forEach(element => visibility.observe(element));
const redraw = () => elements.filter(p => p.dataset.drawn).forEach(draw);
for (const query of ['(prefers-color-scheme: dark)', 'print'])
  matchMedia(query).addEventListener('change', redraw);
addEventListener('beforeprint', () => {
  document.querySelectorAll('details').forEach(d => { d.open = true; });
  elements.forEach(draw);
});
addEventListener('afterprint', redraw);
