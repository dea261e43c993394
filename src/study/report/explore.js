// A sweep as a tool: a plot of any two columns, a table that sorts and filters, and the point that was picked.
const PAGE = 50;

const explore = (root) => {
  const data = JSON.parse(root.querySelector("script.points").textContent);
  const find = (name) => root.querySelector(`.${name}`);
  const columns = data.columns.map((column) => {
    const numbers = column.values.every((value) => value === null || typeof value === "number");
    const levels = numbers ? null : [...new Set(column.values.filter((value) => value !== null).map(String))];
    const at = levels && new Map(levels.map((level, place) => [level, place]));
    const place = (row) => (column.values[row] === null ? null : levels ? at.get(String(column.values[row])) : column.values[row]);
    return { ...column, levels, place, title: column.unit ? `${column.name} (${column.unit})` : column.name };
  });
  const named = new Map(columns.map((column) => [column.name, column]));
  const rows = Array.from({ length: data.commands.length }, (_, row) => row);
  let shown = rows;
  let sorted = { column: "point", down: false };
  let brush = null;
  let picked = null;
  let page = 0;
  let plot = null;

  // ------------------------------------------------------------------------------------------------ what is chosen
  const option = (name, title) => Object.assign(document.createElement("option"), { value: name, textContent: title });
  const able = columns.filter((column) => column.name !== "status");
  for (const list of ["x", "y"]) able.forEach((column) => find(list).append(option(column.name, column.title)));
  find("by").append(option("", "nothing"));
  columns.filter((column) => column.kind === "axis" || column.name === "scenario" || column.name === "status")
    .forEach((column) => find("by").append(option(column.name, column.title)));
  const wanted = data.objectives.map((objective) => objective.name).filter((name) => named.has(name));
  const metrics = columns.filter((column) => column.kind === "metric").map((column) => column.name);
  const axes = columns.filter((column) => column.kind === "axis").map((column) => column.name);
  find("x").value = wanted[0] ?? axes[0] ?? metrics[0];
  find("y").value = wanted[1] ?? (wanted[0] ? axes[0] : null) ?? metrics[0];
  if (named.get("scenario")?.levels?.length > 1) find("by").value = "scenario";

  // ------------------------------------------------------------------------------------------------------- filter
  const rowTest = (text) => (text.trim() ? filterOf(text, columns, data.units) : () => true);
  // The last filter that was right.
  let good = { text: "", test: () => true };
  const choose = () => {
    const input = find("filter");
    try {
      good = { text: input.value.trim(), test: rowTest(input.value) };
      input.removeAttribute("aria-invalid");
      find("wrong").textContent = "";
    } catch (error) {
      input.setAttribute("aria-invalid", "true");
      find("wrong").textContent = `${error.message} (still shown: ${good.text ? `the points with ${good.text}` : "all points"})`;
    }
    const inside = ({ x, y, low, high }, row) => {
      const [a, b] = [named.get(x).place(row), named.get(y).place(row)];
      return a !== null && b !== null && a >= low[0] && a <= high[0] && b >= low[1] && b <= high[1];
    };
    shown = rows.filter((row) => good.test(row) && (!brush || inside(brush, row)));
    const column = named.get(sorted.column);
    const sign = sorted.down ? -1 : 1;
    shown.sort((a, b) => {
      const [left, right] = [column.values[a], column.values[b]];
      if (left === null || right === null) return (left === null) - (right === null) || a - b;
      return sign * (left < right ? -1 : left > right ? 1 : 0) || a - b;
    });
    page = 0;
    draw();
    table();
  };

  // -------------------------------------------------------------------------------------------------------- table
  const cell = (column, row) => {
    const value = column.values[row];
    return value === null ? "" : typeof value === "number" ? `${+value.toPrecision(6)}` : value;
  };
  const table = () => {
    const head = columns.map((column) => {
      const th = document.createElement("th");
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: column.title });
      button.dataset.column = column.name;
      const sort = sorted.column === column.name ? (sorted.down ? "descending" : "ascending") : "none";
      th.setAttribute("aria-sort", sort);
      if (!column.levels) th.className = "n";
      th.append(button);
      return th;
    });
    find("points").tHead.rows[0].replaceChildren(...head);
    const body = shown.slice(page * PAGE, (page + 1) * PAGE).map((row) => {
      const tr = document.createElement("tr");
      tr.dataset.row = row;
      if (row === picked) tr.className = "picked";
      tr.append(...columns.map((column) => {
        const td = Object.assign(document.createElement("td"), { textContent: cell(column, row) });
        if (!column.levels) td.className = "n";
        return td;
      }));
      return tr;
    });
    find("points").tBodies[0].replaceChildren(...body);
    const pages = Math.max(1, Math.ceil(shown.length / PAGE));
    find("count").textContent = `${shown.length} of ${rows.length} points`;
    find("page").textContent = `page ${page + 1} of ${pages}`;
    find("previous").disabled = page === 0;
    find("next").disabled = page + 1 >= pages;
  };

  // ------------------------------------------------------------------------------------------------- what is picked
  const pick = (row) => {
    picked = row;
    const facts = columns.filter((column) => column.values[row] !== null).map((column) => {
      const div = document.createElement("div");
      div.append(Object.assign(document.createElement("dt"), { textContent: column.title }), Object.assign(document.createElement("dd"), { textContent: cell(column, row) }));
      return div;
    });
    find("facts").replaceChildren(...facts);
    find("sets").textContent = data.sets[row].join("\n") || "as the scenario says";
    find("command").textContent = data.commands[row];
    find("picked-point").hidden = false;
    plot?.redraw(false);
    table();
  };

  // --------------------------------------------------------------------------------------------------------- plot
  const sense = (name) => (data.objectives.find((objective) => objective.name === name)?.goal === "maximise" ? -1 : 1);
  const front = (list, x, y) => {
    const order = [...list].sort((a, b) => sense(x.name) * (x.place(a) - x.place(b)) || sense(y.name) * (y.place(a) - y.place(b)));
    const kept = [];
    let best = Infinity;
    for (const row of order) {
      const value = sense(y.name) * y.place(row);
      if (value < best) { best = value; kept.push(row); }
    }
    return new Set(kept);
  };
  const draw = () => {
    const [x, y, by] = [named.get(find("x").value), named.get(find("y").value), named.get(find("by").value)];
    const logs = [find("x-log").checked && !x.levels, find("y-log").checked && !y.levels];
    const there = (row) => {
      const [a, b] = [x.place(row), y.place(row)];
      return a !== null && b !== null && (!logs[0] || a > 0) && (!logs[1] || b > 0);
    };
    const filtered = brush ? rows.filter(there) : shown.filter(there);
    const list = filtered.sort((a, b) => x.place(a) - x.place(b));
    const tint = colours();
    const keys = by ? [...new Set(list.map((row) => String(by.values[row])))].sort((a, b) => (Number(a) - Number(b)) || (a < b ? -1 : 1)) : ["points"];
    const few = keys.slice(0, 12);
    const columnsOf = few.map((key, at) => list.map((row) => {
      const own = by ? String(by.values[row]) : key;
      return own === key || (at === 11 && !few.includes(own)) ? y.place(row) : undefined;
    }));
    const best = front(list.filter((row) => data.status[row] === "ok"), x, y);
    const values = [list.map((row) => x.place(row)), ...columnsOf, list.map((row) => (best.has(row) ? y.place(row) : undefined))];
    const series = [{ label: x.title }, ...few.map((key, at) => ({
      label: by ? `${by.name} ${key}${at === 11 && keys.length > 12 ? " and others" : ""}` : key,
      stroke: tint.series[at], paths: () => null, points: { show: true, size: list.length > 2000 ? 4 : 6, fill: tint.series[at], width: 0 },
    })), { label: "Pareto front", stroke: tint.hot, width: 1, dash: [4, 3], spanGaps: true, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) }];
    const area = find("plot");
    [area.dataset.x, area.dataset.y] = [x.title, y.title];
    plot?.destroy();
    const brushing = find("drag").value === "brush";
    // Points at the ends of an axis stand inside of the plot.
    const limits = (column, log) => {
      if (column.levels) return { min: -0.5, max: column.levels.length - 0.5 };
      const [low, high] = list.reduce(([low, high], row) => [Math.min(low, column.place(row)), Math.max(high, column.place(row))], [Infinity, -Infinity]);
      if (log) return { min: low / 1.1, max: high * 1.1 };
      const room = 0.04 * (high - low) || Math.abs(high) || 1;
      return { min: low - room, max: high + room };
    };
    const fit = () => {
      if (list.length) plot.batch(() => { plot.setScale("x", limits(x, logs[0])); plot.setScale("y", limits(y, logs[1])); });
    };
    const ring = (u) => {
      if (picked === null) return;
      const [a, b] = [x.place(picked), y.place(picked)];
      if (a === null || b === null) return;
      const context = u.ctx;
      context.save();
      context.strokeStyle = tint.ink;
      context.lineWidth = 2 * devicePixelRatio;
      context.beginPath();
      context.arc(u.valToPos(a, "x", true), u.valToPos(b, "y", true), 7 * devicePixelRatio, 0, 2 * Math.PI);
      context.stroke();
      context.restore();
    };
    const selected = (u) => {
      const { left, top, width, height } = u.select;
      if (!brushing || width < 2 || height < 2) return;
      brush = { x: x.name, y: y.name, low: [u.posToVal(left, "x"), u.posToVal(top + height, "y")], high: [u.posToVal(left + width, "x"), u.posToVal(top, "y")] };
      u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      choose();
      if (shown.length) pick(shown[0]);
    };
    plot = new uPlot({
      width: Math.max(300, area.clientWidth), height: 380, series,
      scales: { x: { time: false, distr: logs[0] ? 3 : 1 }, y: { distr: logs[1] ? 3 : 1 } },
      axes: [axis(x.title, x.levels, tint), axis(y.title, y.levels, tint)],
      legend: { live: false }, cursor: { drag: { x: true, y: true, setScale: !brushing }, points: { show: false } },
      hooks: { draw: [ring], setSelect: [selected] },
    }, values, area);
    fit();
    plot.over.addEventListener("dblclick", () => setTimeout(fit, 0));
    // A click picks the point that is nearest, if it is near.
    let down = null;
    plot.over.addEventListener("mousedown", (event) => { down = [event.offsetX, event.offsetY]; });
    plot.over.addEventListener("mouseup", (event) => {
      if (!down || Math.hypot(event.offsetX - down[0], event.offsetY - down[1]) > 3) return;
      let [near, least] = [null, 15];
      for (const row of list) {
        const away = Math.hypot(plot.valToPos(x.place(row), "x") - event.offsetX, plot.valToPos(y.place(row), "y") - event.offsetY);
        if (away < least) [near, least] = [row, away];
      }
      if (near !== null) pick(near);
    });
  };

  // -------------------------------------------------------------------------------------------------------- events
  for (const name of ["x", "y", "by", "x-log", "y-log", "drag"]) {
    find(name).addEventListener("change", () => { if (name === "x" || name === "y") { brush = null; choose(); } else { draw(); } });
  }
  find("filter").addEventListener("input", choose);
  find("reset").addEventListener("click", () => { brush = null; find("filter").value = ""; choose(); });
  find("previous").addEventListener("click", () => { page -= 1; table(); });
  find("next").addEventListener("click", () => { page += 1; table(); });
  find("points").addEventListener("click", (event) => {
    const head = event.target.closest("button");
    if (head) {
      const name = head.dataset.column;
      sorted = { column: name, down: sorted.column === name && !sorted.down };
      choose();
      return;
    }
    const row = event.target.closest("tbody tr");
    if (row) pick(Number(row.dataset.row));
  });
  redraw.push(draw);
  root.hidden = false;
  choose();
  // For whoever drives the page from a script: the rows that a filter leaves, and where a point stands on the screen.
  root.rowsOf = (text) => rows.filter(rowTest(text));
  root.locate = (row) => {
    const [x, y] = [named.get(find("x").value), named.get(find("y").value)];
    const box = plot.over.getBoundingClientRect();
    return [box.left + plot.valToPos(x.place(row), "x"), box.top + plot.valToPos(y.place(row), "y")];
  };
};

document.querySelectorAll(".explore").forEach(explore);
