// Charts that zoom: every figure that carries its series is drawn anew with uPlot; the picture stays for those without scripts.
const colours = () => {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  return { ink: of("--ink"), soft: of("--soft"), rule: of("--rule"), hot: of("--hot"), series: Array.from({ length: 12 }, (_, at) => of(`--c${at}`)) };
};

const short = (value) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  const size = Math.abs(value);
  if (size >= 1e9) return `${+(value / 1e9).toPrecision(4)}G`;
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(4)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(4)}k`;
  return `${+value.toPrecision(4)}`;
};

// Axes of a plot: names with units, and words instead of numbers where an axis has levels.
const axis = (label, levels, tint) => ({
  label, stroke: tint.soft, grid: { stroke: tint.rule, width: 1 }, ticks: { stroke: tint.rule, width: 1 }, size: 62,
  values: (_, ticks) => ticks.map((tick) => (levels ? (Number.isInteger(tick) ? levels[tick] ?? "" : "") : short(tick))),
  ...(levels ? { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] } : {}),
});

const figures = [];

const drawFigure = (figure) => {
  const chart = JSON.parse(figure.querySelector("script.series").textContent);
  const all = [...new Set(chart.series.flatMap((series) => series.points.map((point) => point[0])))].sort((a, b) => a - b);
  const place = new Map(all.map((x, at) => [x, at]));
  const data = [all];
  const tint = colours();
  const series = [{ label: chart.x }];
  chart.series.forEach((one, at) => {
    const column = new Array(all.length).fill(undefined);
    for (const [x, y] of one.points) column[place.get(x)] = chart.log && !(y > 0) ? null : y;
    data.push(column);
    const stroke = tint.series[at % 12];
    series.push({
      label: one.name || chart.y, stroke, width: 2, spanGaps: true,
      paths: one.marks ? () => null : undefined, points: { show: one.marks || one.points.length <= 40, size: 6, fill: stroke },
    });
  });
  figure.querySelector(".uplot")?.remove();
  const options = {
    width: Math.max(280, figure.clientWidth), height: 300, series,
    scales: { x: { time: false, ...(chart.levels.length ? { range: [-0.5, chart.levels.length - 0.5] } : {}) }, y: { distr: chart.log ? 3 : 1 } },
    axes: [axis(chart.x, chart.levels.length ? chart.levels : null, tint), axis(chart.y, null, tint)],
    cursor: { drag: { x: true, y: true, uni: 20 } },
  };
  figure.plot = new uPlot(options, data, figure);
  figure.classList.add("live");
};

for (const figure of document.querySelectorAll("figure.chart")) {
  if (figure.querySelector("script.series")) {
    figures.push(figure);
    drawFigure(figure);
  }
}

// Dark and light, and another width of the window: drawn anew.
const redraw = [];
const again = () => { figures.forEach(drawFigure); redraw.forEach((draw) => draw()); };
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
let waiting = 0;
addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(again, 150); });

// The load of links over time: a slider over the drawn topology.
for (const heat of document.querySelectorAll("figure.heat")) {
  const script = heat.querySelector("script.loads");
  if (!script) continue;
  const { cycles, loads } = JSON.parse(script.textContent);
  const slider = heat.querySelector("input");
  const told = heat.querySelector("output");
  const links = [...heat.querySelectorAll("path.load")];
  const whole = links.map((link) => ({ width: link.getAttribute("stroke-width"), opacity: link.getAttribute("stroke-opacity"), title: link.querySelector("title").textContent }));
  const most = Math.max(1e-9, ...loads.map((step) => Math.max(0, ...step)));
  const show = () => {
    const at = Number(slider.value);
    told.textContent = at === 0 ? "the whole run" : `cycles ${cycles[at - 1]} to ${cycles[at]}`;
    links.forEach((link, number) => {
      const title = link.querySelector("title");
      if (at === 0) {
        link.setAttribute("stroke-width", whole[number].width);
        link.setAttribute("stroke-opacity", whole[number].opacity);
        title.textContent = whole[number].title;
        return;
      }
      const load = loads[at - 1][Number(link.dataset.link)] ?? 0;
      link.setAttribute("stroke-width", (1 + 3.5 * load / most).toFixed(1));
      link.setAttribute("stroke-opacity", (0.14 + 0.86 * load / most).toFixed(2));
      title.textContent = `${whole[number].title.split(":")[0]}: ${(100 * load).toFixed(1)} %`;
    });
  };
  slider.addEventListener("input", show);
  show();
}
