// Draws the charts. Everything else works without scripts, or is htmx.
(() => {
  "use strict";
  const charts = new Set();
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const formats = {
    usd: (v) => (v == null ? "–" : "$" + (v === 0 || v >= 1 ? v.toFixed(2) : v.toFixed(4))),
    share: (v) => (v == null ? "–" : Math.round(v * 100) + "%"),
  };
  const axis = (format) => ({
    stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false },
    font: "12px system-ui, sans-serif", size: 58, values: (_, splits) => splits.map(format),
  });

  function draw(host) {
    const told = JSON.parse(host.dataset.chart);
    const format = formats[told.format];
    const stacked = told.kind === "stack";
    let values = told.series.map((one) => one.values);
    if (stacked) values = values.map((_, i) => values[0].map((_, x) => values.slice(0, i + 1).reduce((sum, s) => sum + s[x], 0)));
    const order = values.map((_, i) => i);
    if (stacked) order.reverse(); // the tallest first: the others are painted over it
    const bars = uPlot.paths.bars({ size: [0.7, 26], gap: 1 });
    const day = { year: "numeric", month: "short", day: "numeric", timeZone: "UTC" };
    const options = {
      width: host.clientWidth, height: 210, tzDate: (ts) => uPlot.tzDate(new Date(ts * 1e3), "Etc/UTC"),
      padding: [10, 8, 0, 0], cursor: { points: { size: 7 }, drag: { x: false, y: false } },
      scales: { y: { range: told.format === "share" ? [0, 1] : (_, __, max) => [0, max > 0 ? max * 1.08 : 1] } },
      axes: [Object.assign(axis((v) => v), { size: 34, space: 64, values: (_, splits) => splits.map((v) => new Date(v * 1e3).toLocaleDateString("en-GB", { month: "short", day: "numeric", timeZone: "UTC" })) }), axis(format)],
      series: [{ label: told.bucket, value: (_, v) => (v == null ? "–" : new Date(v * 1e3).toLocaleDateString("en-GB", day)) }].concat(
        order.map((i) => {
          const paint = colour("--m" + told.series[i].colour);
          const own = told.series[i].values;
          return {
            label: told.series[i].label, stroke: paint, width: stacked ? 0 : 2, fill: stacked ? paint : undefined,
            paths: stacked ? bars : undefined, spanGaps: true, points: { show: !stacked, size: 5, fill: paint },
            value: (_, v, __, x) => format(x == null ? null : own[x]),
          };
        })
      ),
    };
    const chart = new uPlot(options, [told.x].concat(order.map((i) => values[i])), host);
    charts.add({ host, chart });
  }

  function drawAll() {
    for (const one of charts) if (!one.host.isConnected) { one.chart.destroy(); charts.delete(one); }
    document.querySelectorAll(".chart[data-chart]").forEach((host) => { if (!host.firstElementChild) draw(host); });
  }
  function drawAgain() {
    for (const one of charts) { one.chart.destroy(); one.host.replaceChildren(); }
    charts.clear();
    drawAll();
  }
  // Where the pages' names are wider than the screen, the current one is to be seen.
  function showCurrent() {
    const current = document.querySelector(".top nav [aria-current]");
    if (current) current.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  let waiting;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(drawAgain, 150); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAgain);
  document.addEventListener("DOMContentLoaded", drawAll);
  document.addEventListener("DOMContentLoaded", showCurrent);
  document.addEventListener("htmx:afterSettle", drawAll);
  // A filter that is changed answers at once; without scripts there is its button.
  document.addEventListener("change", (event) => { if (event.target.matches("form.filter select")) event.target.form.requestSubmit(); });
})();
