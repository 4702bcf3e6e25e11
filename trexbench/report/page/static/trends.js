"use strict";
// Figures of every run over time.
function trendsPlot(page) {
  function levels(trend, change) {
    var found = [], first = trend.x[0], last = trend.x[trend.x.length - 1];
    if (change.before !== null) { found.push([first, change.x, change.before]); }
    if (change.after !== null) { found.push([change.x, last, change.after]); }
    return found;
  }

  return function (now) {
    var metric = page.data.metrics.filter(function (one) { return one.name === page.id("metric").value; })[0];
    if (!metric) { return; }
    var traces = [], shown = [], shapes = [], notes = [], failed = { x: [], y: [], text: [] };
    var share = metric.unit === "Mpps" && now.unit === "share";
    page.data.trends.forEach(function (trend) {
      var cell = page.data.cells[trend.cell], values = trend.values[metric.name];
      if (!page.chosen(cell, now)) { return; }
      var style = page.look(cell, now), name = page.label(cell, now);
      var scale = share && trend.line[0] ? 100 / trend.line[0] : metric.scale, unit = share ? " % of line rate" : " " + metric.unit;
      shown.push(cell);
      trend.failed.forEach(function (one) {
        failed.x.push(one[0]); failed.y.push(0.03); failed.text.push("<b>" + name + "</b>, " + page.plain(one[0]) + "<br>" + page.wrapped(one[1]));
      });
      if (!values) { return; }
      var bounds = values.map(function (_, at) { return metric.bounded && trend.bound[at]; });
      traces.push({ x: trend.x, y: values.map(function (value) { return value === null ? null : value * scale; }), type: "scatter",
        mode: "lines+markers", name: name, legendgroup: name, connectgaps: false, line: { color: style.colour, width: 1.2, dash: style.dash },
        marker: { color: style.colour, size: trend.x.length > 90 ? 4 : 6.5,
          symbol: bounds.map(function (is) { return is ? "triangle-up-open" : style.marker; }) },
        hoverinfo: "text", hovertext: values.map(function (value, at) {
          return value === null ? "" : "<b>" + name + "</b>, " + page.plain(trend.x[at]) + "<br>" + (bounds[at] ? "at least " : "") + page.digits(value * scale) + unit;
        }) });
      trend.changes.forEach(function (change) {
        if (change.metric !== metric.name) { return; }
        shapes.push({ type: "line", x0: change.x, x1: change.x, yref: "paper", y0: 0, y1: 1,
          line: { color: change.bad ? page.css("--bad") : page.css("--good"), width: 1.5, dash: "dash" } });
        notes.push({ x: change.x, yref: "paper", y: 1, yanchor: "bottom", showarrow: false, text: change.bad ? "\u25bc" : "\u25b2",
          font: { color: change.bad ? page.css("--bad") : page.css("--good") }, hovertext: page.wrapped(change.text) });
        levels(trend, change).forEach(function (level) {
          shapes.push({ type: "line", x0: level[0], x1: level[1], y0: level[2] * scale, y1: level[2] * scale,
            line: { color: style.colour, width: 3 }, opacity: 0.55 });
        });
      });
    });
    if (failed.x.length) {
      traces.push({ x: failed.x, y: failed.y, yaxis: "y2", type: "scatter", mode: "markers", name: "failed", hoverinfo: "text", hovertext: failed.text,
        marker: { symbol: "x", size: 8, color: page.css("--bad") } });
    }
    page.draw("trends", traces, page.layout(shown, {
      xaxis: page.axis("", { type: "date" }), shapes: shapes, annotations: notes,
      yaxis: page.axis(page.plain(metric.name) + (share ? ", % of line rate" : ", " + page.plain(metric.unit)), { rangemode: page.id("zero").checked ? "tozero" : "normal" }),
      yaxis2: { overlaying: "y", range: [0, 1], visible: false, fixedrange: true }
    }));
  };
}
