"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const drawn = JSON.parse(byId("drawn").textContent);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 1 ? 1 : 0)} %`;
  const number = (value) =>
    value >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
  const HEIGHT = 280;
  let plots = [];

  const axis = (more) => ({
    stroke: () => colour("--soft"),
    grid: { stroke: () => colour("--line"), width: 1 },
    ticks: { stroke: () => colour("--line"), width: 1 },
    ...more,
  });

  const options = (place, name, series, more) => ({
    width: Math.max(place.clientWidth, 260),
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: {
      x: { time: false, range: (_plot, _low, high) => [0, high * 1.04 || 1] },
      // Leave room at both ends, so that a point at 0 or 100 % is not cut.
      y: { range: () => [-0.05, 1.05] },
    },
    axes: [
      axis({ label: name, labelSize: 24, size: 34, space: 64, values: (_plot, at) => at.map(number) }),
      axis({ size: 58, splits: () => [0, 0.25, 0.5, 0.75, 1], values: (_plot, at) => at.map((one) => `${100 * one} %`) }),
    ],
    series: [{}, series],
    ...more,
  });

  /** Find the point nearest to the cursor, in pixels; null if the cursor is not on the plot. */
  const nearest = (plot, points) => {
    const { left, top } = plot.cursor;
    if (left == null || left < 0) return null;
    const away = (one) => Math.hypot(plot.valToPos(one[0], "x") - left, plot.valToPos(one[1], "y") - top);
    return points.reduce((best, one) => (best === null || away(one) < away(best) ? one : best), null);
  };

  const drawPoints = (name, points) => {
    const place = byId("points");
    const tell = (plot) => {
      const near = nearest(plot, points);
      byId("near").textContent = near === null ? "" : `${near[2]}: ${number(near[0])} ${name}, solved ${percent(near[1])}`;
    };
    const dots = {
      paths: () => null,
      points: { show: true, size: 9, width: 1, stroke: () => colour("--mark"), fill: () => colour("--band") },
    };
    const data = [points.map((one) => one[0]), points.map((one) => one[1])];
    return new uPlot(options(place, `mean ${name} per run`, dots, { hooks: { setCursor: [tell] } }), data, place);
  };

  const drawCurve = (name, curve) => {
    const place = byId("curve");
    const band = (plot) => {
      if (drawn.solved === null) return;
      const { ctx, bbox } = plot;
      const low = plot.valToPos(drawn.solved.low, "y", true);
      const high = plot.valToPos(drawn.solved.high, "y", true);
      ctx.save();
      ctx.fillStyle = colour("--band");
      ctx.fillRect(bbox.left, high, bbox.width, low - high);
      ctx.restore();
    };
    const tell = (plot) => {
      const at = plot.cursor.left == null || plot.cursor.left < 0 ? -1 : plot.posToVal(plot.cursor.left, "x");
      const reached = curve.filter((one) => one[0] <= at).at(-1);
      byId("reached").textContent = reached ? `with at most ${number(at)} ${name}: ${percent(reached[1])}` : "";
    };
    const line = {
      stroke: () => colour("--mark"),
      width: 2,
      paths: uPlot.paths.stepped({ align: 1 }),
      points: { show: false },
    };
    const data = [curve.map((one) => one[0]), curve.map((one) => one[1])];
    const hooks = { drawClear: [band], setCursor: [tell] };
    return new uPlot(options(place, `maximum ${name} per run`, line, { hooks }), data, place);
  };

  const draw = () => {
    const pressed = document.querySelector("[data-cost][aria-pressed=true]");
    if (pressed === null) return;
    plots.forEach((plot) => plot.destroy());
    const name = pressed.dataset.cost;
    const { points, curve } = drawn.costs[name];
    plots = [drawPoints(name, points), drawCurve(name, curve)];
  };

  const press = (all, chosen, on) => all.forEach((one) => one.setAttribute("aria-pressed", String(on && one === chosen)));

  const costs = document.querySelectorAll("[data-cost]");
  costs.forEach((button) =>
    button.addEventListener("click", () => {
      press(costs, button, true);
      draw();
    }),
  );

  const grid = document.querySelector(".grid");
  const picks = document.querySelectorAll("[data-pick]");
  picks.forEach((button) =>
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      press(picks, button, on);
      grid.classList.toggle("picking", on);
      grid.querySelectorAll(".cell").forEach((cell) =>
        cell.classList.toggle("picked", on && cell.classList.contains(button.dataset.pick)),
      );
    }),
  );
  grid.addEventListener("click", (event) => {
    const cell = event.target.closest("[title]");
    byId("told").textContent = cell === null ? "" : cell.title;
  });

  draw();
  let width = document.documentElement.clientWidth;
  addEventListener("resize", () => {
    if (document.documentElement.clientWidth !== width) {
      width = document.documentElement.clientWidth;
      draw();
    }
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();
