"use strict";
// Offered against received, the loss below: each cell's latest run, and beside it those of older nights.
function rampsPlot(page) {
  var LOSS_FLOOR = 0.001; // percent; less has no place on an axis of powers of ten
  var data = page.data, plain = page.plain;

  function latestStyle(curve, look) {
    return { line: { color: look.colour, width: 1.8, dash: look.dash },
      marker: { color: look.colour, symbol: look.marker, size: look.size, maxdisplayed: page.SIGNS, line: look.ring },
      mode: curve.x.length > 2 ? "lines+markers" : "markers", opacity: 1 };
  }

  // The line, the same run's loss, and the mark of its knee or bound.
  function traces(curve, name, style, scale, log, rank) {
    var told = curve.x.map(function (value, at) {
      return "<b>" + name + "</b><br>offered " + page.mpps(value) + ", " + page.digits(100 * value / curve.line) + " % of line rate<br>received " +
        page.mpps(curve.y[at]) + "<br>loss " + page.digits(100 * curve.loss[at]) + " %" + (curve.otherwise ? "<br>the DUT was configured differently" : "");
    });
    var basic = Object.assign({ x: curve.x.map(function (value) { return value * scale; }), type: "scatter", name: name, legendgroup: name,
      legendrank: rank, hoverinfo: "text", hovertext: told }, style);
    var made = [
      Object.assign({ y: curve.y.map(function (value) { return value * scale; }) }, basic),
      Object.assign({}, basic, { yaxis: "y2", showlegend: false, y: curve.loss.map(function (value) {
        return log ? Math.max(100 * value, LOSS_FLOOR) : 100 * value;
      }) })
    ];
    var mark = curve.knee !== null ? curve.knee : curve.bound, colour = style.line.color;
    if (mark !== null) {
      made.push({ x: [mark * scale], y: [mark * scale], type: "scatter", mode: "markers", name: name, legendgroup: name, showlegend: false,
        opacity: style.opacity, marker: { size: curve.why ? 9 : 12, color: colour, symbol: curve.knee !== null ? "x-thin" : "triangle-right-open",
          line: { width: curve.why ? 1.5 : 2.5, color: colour } },
        error_x: { type: "data", symmetric: false, array: [(curve.high - mark) * scale], arrayminus: [(mark - curve.low) * scale],
          color: colour, visible: curve.high !== null },
        hoverinfo: "text", hovertext: ["<b>" + name + "</b><br>" + plain(curve.words).replace(/, /g, "<br>")] });
    }
    return made;
  }

  // Legend entries name the night as soon as there is more than one of a line.
  function name(curve, now, dated) {
    var cell = data.cells[curve.cell], night = plain(curve.night);
    var base = page.label(cell, now) + (cell.bidir ? ", " + plain(curve.direction) : "");
    if (!curve.why) { return dated || cell.night ? base + "<br>" + night + ", latest" : base; }
    return base + "<br>" + night + ", " + plain(curve.label);
  }

  return function (now) {
    var ways = page.ticked("direction"), kinds = page.ticked("older"), log = page.id("log").checked, share = now.unit === "share";
    var under = [], over = [], shown = [], top = 0, threshold = 0;
    data.curves.forEach(function (curve, number) {
      var cell = data.cells[curve.cell];
      if (!page.chosen(cell, now) || ways.indexOf(curve.direction) < 0) { return; }
      var look = page.look(cell, now, curve.direction), scale = share ? 100 / curve.line : 1e-6, rank = 1000 + 10 * number;
      var older = data.older.filter(function (one) {
        return one.cell === curve.cell && one.direction === curve.direction && page.wanted(one, kinds);
      });
      shown.push(cell);
      threshold = Math.max(threshold, 100 * curve.threshold);
      [curve].concat(older).forEach(function (one) { top = Math.max(top, scale * Math.max.apply(null, one.x)); });
      older.forEach(function (one, at) {
        under = under.concat(traces(one, name(one, now, true), page.olderStyle(one, look), scale, log, rank + 1 + at));
      });
      over = over.concat(traces(curve, name(curve, now, older.length > 0), latestStyle(curve, look), scale, log, rank));
    });
    var unit = share ? "% of line rate" : "Mpps";
    var diagonal = { x: [0, top], y: [0, top], type: "scatter", mode: "lines", name: "no loss", hoverinfo: "skip", legendrank: 1e6,
      line: { color: page.css("--soft"), width: 1, dash: "dot" } };
    page.draw("ramps", under.concat(over, [diagonal]), page.layout(shown, {
      xaxis: page.axis("offered, " + unit, { anchor: "y2", rangemode: "tozero" }),
      yaxis: page.axis("received, " + unit, { domain: [0.33, 1], rangemode: "tozero" }),
      yaxis2: page.axis("loss, %", { domain: [0, 0.26], type: log ? "log" : "linear", exponentformat: "none",
        tickmode: log ? "array" : "auto", tickvals: [LOSS_FLOOR, 0.01, 0.1, 1, 10, 100],
        ticktext: ["0", "0.01", "0.1", "1", "10", "100"], fixedrange: true, range: log ? [-3.15, 2.15] : undefined }),
      shapes: threshold ? [{ type: "line", xref: "paper", x0: 0, x1: 1, yref: "y2", y0: threshold, y1: threshold,
        line: { color: page.css("--bad"), width: 1, dash: "dash" } }] : []
    }));
  };
}
