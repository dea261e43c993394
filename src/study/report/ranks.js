// Ranks over time: a bar a rank, computing above and communicating below, and a line where the critical path runs through it. Dragging
// zooms, a double click shows all again, a click on a bar says what it is.
const drawRanks = (figure) => {
  const { ranks, spans, path, end, ns } = JSON.parse(figure.querySelector("script.ranks").textContent);
  const told = figure.querySelector("output");
  const tint = colours();
  figure.querySelector(".uplot")?.remove();
  // Where a track of a bar is, in parts of a rank: computing, communicating, the critical path.
  const tracks = [[-0.4, -0.02], [-0.02, 0.36], [0.36, 0.44]];
  const paints = [tint.series[0], tint.series[1], tint.hot];
  const paint = (u) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    const bar = (rank, track, from, to) => {
      const [left, right] = [u.valToPos(from, "x", true), u.valToPos(to, "x", true)];
      const [above, below] = tracks[track].map((part) => u.valToPos(rank + part, "y", true));
      ctx.fillStyle = paints[track];
      // What is next to each other is told apart where there is room.
      const width = right - left;
      ctx.fillRect(left, Math.min(above, below), width > 3 ? width - 1 : Math.max(width, 0.5), Math.abs(below - above));
    };
    for (const [rank, track, from, to] of spans) bar(rank, track, from, to);
    for (const [rank, from, to] of path) bar(rank, 2, from, to);
    ctx.restore();
  };
  const time = (cycle) => `${short(cycle)} (${short(cycle * ns)} ns)`;
  const find = (x, y) => {
    const rank = Math.round(y);
    const track = y - rank < tracks[0][1] ? 0 : 1;
    return spans.find((span) => span[0] === rank && span[1] === track && span[2] <= x && x < span[3]);
  };
  const options = {
    width: Math.max(280, figure.clientWidth), height: Math.min(900, 90 + 22 * ranks), legend: { show: false },
    series: [{}, { paths: () => null, points: { show: false } }],
    scales: { x: { time: false }, y: { range: () => [-0.6, ranks - 0.4], dir: -1 } },
    axes: [axis("cycles", null, tint), axis("rank", Array.from({ length: ranks }, (_, rank) => `${rank}`), tint)],
    cursor: { drag: { x: true, y: false }, points: { show: false } },
    hooks: { draw: [paint] },
  };
  const plot = new uPlot(options, [[0, end], [0, 0]], figure);
  let down = [0, 0];
  plot.over.addEventListener("mousedown", (event) => { down = [event.clientX, event.clientY]; });
  plot.over.addEventListener("click", (event) => {
    if (Math.hypot(event.clientX - down[0], event.clientY - down[1]) > 3) return;
    const box = plot.over.getBoundingClientRect();
    const [x, y] = [plot.posToVal(event.clientX - box.left, "x"), plot.posToVal(event.clientY - box.top, "y")];
    const span = find(x, y);
    told.textContent = span
      ? `rank ${span[0]}: ${span[4] || ["computes", "communicates"][span[1]]}, cycles ${time(span[2])} to ${time(span[3])}: ${time(span[3] - span[2])}`
      : `rank ${Math.min(ranks - 1, Math.max(0, Math.round(y)))} waits in cycle ${short(x)}`;
  });
  figure.plot = plot;
  figure.classList.add("live");
  // For whoever drives the page from a script: where a cycle of a rank's computing (0) or communicating (1) stands on the screen.
  figure.locate = (rank, cycle, track) => {
    const box = plot.over.getBoundingClientRect();
    const middle = (tracks[track][0] + tracks[track][1]) / 2;
    return [box.left + plot.valToPos(cycle, "x"), box.top + plot.valToPos(rank + middle, "y")];
  };
};

const ranked = [...document.querySelectorAll("figure.ranks")];
ranked.forEach(drawRanks);
redraw.push(() => ranked.forEach(drawRanks));
