"use strict";
// Which documents a night's points come from: a click on the plot, or the choice below it, names them.
function trendDocuments(page) {
  var MOST = 60, data = page.data, state = null, bound = false;

  // As _document in trend_data.py left it.
  function path(trend, run, night) { return (trend.documents[run][0] === "/" ? night : "") + trend.documents[run]; }

  function sayings(trend, at) {
    var metric = state.metric, line = state.read(trend, metric), cell = data.cells[trend.cell], found = [];
    (line ? line.points : []).forEach(function (point) {
      if (point.x !== at || point.run < 0) { return; }
      var figure = point.value === null ? "no " + metric.name : (point.bound ? "at least " : "") + page.digits(point.value * metric.scale) + " " + metric.unit;
      found.push([data.nights[at] + ", " + cell.name + ": " + figure + ", ", path(trend, point.run, data.nights[at])]);
    });
    trend.failed.forEach(function (one) {
      if (one[0] === at) { found.push([data.nights[at] + ", " + cell.name + ": failed: " + one[1]]); }
    });
    return found;
  }

  function item(text, path) {
    var one = document.createElement("li");
    one.textContent = text + (path ? "document " : "");
    if (path) { one.appendChild(document.createElement("code")).textContent = path; }
    return one;
  }

  function list(trends) {
    var at = data.nights.indexOf(page.id("night").value), found = [];
    trends.forEach(function (trend) { found = found.concat(sayings(trend, at)); });
    var items = found.slice(0, MOST).map(function (one) { return item(one[0], one[1]); });
    if (found.length > MOST) { items.push(item("and " + (found.length - MOST) + " more: choose a mode or DUT")); }
    if (!items.length) { items.push(item("No cell that is chosen was measured then.")); }
    page.id("documents-list").replaceChildren.apply(page.id("documents-list"), items);
  }

  function clicked(event) {
    var cells = event.points.map(function (one) { return one.data.meta; }), night = String(event.points[0].x).slice(0, 16);
    if (data.nights.indexOf(night) < 0) { return; }
    page.id("night").value = night;
    page.id("documents").open = true;
    list(cells.indexOf(undefined) < 0 ? state.trends.filter(function (one) { return cells.indexOf(one.cell) >= 0; }) : state.trends);
  }

  function begin() {
    bound = true;
    data.nights.slice().reverse().forEach(function (night) {
      page.id("night").appendChild(document.createElement("option")).textContent = night;
    });
    page.id("documents").hidden = false;
    page.id("night").addEventListener("change", function () { list(state.trends); });
    page.id("plot-trends").on("plotly_click", clicked);
  }

  // Called after each drawing with what is drawn. read: one cell's figures.
  return function (trends, metric, now, read) {
    state = { trends: trends, metric: metric, read: read };
    if (!bound) { begin(); }
    list(trends);
  };
}
