// Panels below each other; older nights under the latest.
function stackForm(page, of, name) {
  var LETTER = 8; // pixels of a letter of a tick
  var plain = page.plain;

  // Lines of a cell and a night have one entry in the legend, which hides and shows all of them.
  function shownOnce(traces) {
    traces.forEach(function (one, at) {
      one.showlegend = traces.findIndex(function (other) { return other.legendgroup === one.legendgroup; }) === at;
    });
  }

  // One entry for each kind of marker that is drawn.
  function keys(figure, lines) {
    var soft = page.css("--soft");
    return (figure.keys || []).filter(function (_, at) { return lines.some(function (line) { return line.key === at; }); }).map(function (key) {
      return { x: [null], y: [null], type: "scatter", mode: "markers", name: plain(key[1]), hoverinfo: "skip", legendrank: 2000,
        marker: { symbol: key[0], size: 10, color: soft, line: { width: 1.6, color: soft } } };
    });
  }

  // Of the ticks those that have room beside each other.
  function roomy(one, room) {
    var apart = LETTER * Math.max.apply(null, one.ticks.map(function (tick) { return tick[1].length; })), last = -Infinity;
    return one.span ? one.ticks.filter(function (tick) {
      var at = Math.log(tick[0] / one.span[0]) / Math.log(one.span[1] / one.span[0]) * room;
      if (at - last < apart) { return false; }
      last = at;
      return true;
    }) : one.ticks;
  }

  function axis(one, scale, values, room) {
    var title = plain(one.titles ? one.titles[scale] : one.title || "");
    if (!one.ticks || (one.switch && !page.id(one.switch).checked)) {
      return page.axis(title, one.fit ? page.fitted(values) : one.span && !one.switch ? { range: one.span } : { rangemode: "tozero" });
    }
    var kept = roomy(one, room);
    return page.axis(title, { type: "log", tickmode: "array", tickvals: kept.map(function (tick) { return tick[0]; }), tickangle: 0,
      ticktext: kept.map(function (tick) { return plain(tick[1]); }), range: one.span ? one.span.map(Math.log10) : undefined });
  }

  // Figures above zero of the lines in a panel; null: of all.
  function positive(lines, panel, figures) {
    return lines.filter(function (line) { return panel === null || (line.panel || 0) === panel; }).flatMap(figures).filter(function (value) { return value > 0; });
  }

  // From the origin to the largest figure of the first panel.
  function diagonal(figure, lines, alongs) {
    var top = Math.max.apply(null, positive(lines, 0, alongs).concat(0));
    return { x: [0, top], y: [0, top], type: "scatter", mode: "lines", name: plain(figure.diagonal), hoverinfo: "skip", legendrank: 1e6,
      line: { color: page.css("--soft"), width: 1, dash: "dot" } };
  }

  function limit(panel, value) {
    return { type: "line", xref: "paper", x0: 0, x1: 1, yref: "y" + of.panelNumber(panel), y0: value, y1: value, line: { color: page.css("--bad"), width: 1, dash: "dash" } };
  }

  // The axes of all panels, and limits across them.
  function axes(figure, lines, scale, alongs) {
    var below = figure.below || [], each = 1 - 1 / (1 + below.length / 2), high = below.length ? each / below.length : 0;
    var made = { shapes: [] };
    made.xaxis = Object.assign(axis(figure.x, scale, positive(lines, null, alongs), page.width() - 110), { anchor: "y" + of.panelNumber(below.length) });
    [figure.y].concat(below).forEach(function (one, panel) {
      made["yaxis" + of.panelNumber(panel)] = Object.assign(axis(one, scale, positive(lines, panel, function (line) { return line.y; })), {
        domain: panel ? [(below.length - panel) * high, (below.length - panel + 1) * high - 0.06] : [each, 1], fixedrange: Boolean(one.switch)
      });
      if (one.limit) { made.shapes.push(limit(panel, one.limit)); }
    });
    return made;
  }

  function older(line) { return Boolean(line.tags && line.tags.older); }

  return function (figure, lines, now) {
    var scale = of.scaleOf(now.unit, figure.y.titles || figure.x.titles || {}, lines), panels = (figure.below || []).length;
    function along(line, value) { return figure.x.titles ? of.scaled(line, value, scale) : value; }
    function up(line, value) { return figure.y.titles && !line.panel ? of.scaled(line, value, scale) : value; }
    function alongs(line) { return of.across(line).map(function (value) { return along(line, value); }); }
    var traces = lines.map(function (line, at) {
      return of.trace(line, figure, of.label(line, figure, now), along, up, { x: "x", y: "y" + of.panelNumber(line.panel || 0) }, { legendrank: 1000 + at });
    });
    shownOnce(traces);
    var own = traces.filter(function (one) { return one.showlegend; }).length;
    traces = traces.filter(function (_, at) { return older(lines[at]); }).concat(traces.filter(function (_, at) { return !older(lines[at]); }));
    if (figure.diagonal) { traces.push(diagonal(figure, lines, alongs)); }
    var shape = axes(figure, lines, scale, alongs), under = figure.follows !== "cells";
    if (under) { shape.legend = { orientation: "h", yref: "container", y: 0, yanchor: "bottom", font: { size: 11 } }; }
    var high = !lines.length ? 120 : under ? 400 + (of.narrow() ? 30 : 22) * own : panels > 1 && (of.narrow() || page.printed()) ? 600 + 20 * own : 0;
    page.draw(name, traces.concat(keys(figure, lines)), page.layout(lines.map(of.cell), shape), high);
  };
}
