"use strict";
// Which documents a night's points come from: a click on the plot, or the choice below it, names them.
function trendDocuments(page) {
  var MOST = 60, data = page.data, state = null, bound = false;

  // As _document in plots_trends.py left it.
  function path(document, night) { return (document[0] === "/" ? night : "") + document; }

  function sayings(number, at) {
    var trend = data.trends[number], night = data.nights[at], name = night + ", " + data.cells[number].name + ": ", found = [];
    state.lines.filter(function (line) { return line.levels && line.cells[0] === number; }).forEach(function (line) {
      trend.x.forEach(function (x, point) {
        if (x !== at || trend.documents[point] === null) { return; }
        found.push([name + (line.y[point] === null ? "no " + state.figure.title : state.text(line, point)) + ", ", path(trend.documents[point], night)]);
      });
    });
    trend.failed.forEach(function (one) {
      if (one[0] === at) { found.push([name + "failed: " + one[1]]); }
    });
    return found;
  }

  function item(text, path) {
    var one = document.createElement("li");
    one.textContent = text + (path ? "document " : "");
    if (path) { linked(one, path).appendChild(document.createElement("code")).textContent = path; }
    return one;
  }

  // Where the page knows its way to the documents.
  function linked(place, path) {
    var below = page.id("documents-list").dataset.below, link = document.createElement("a");
    if (below === undefined) { return place; }
    link.href = below + path.split("/").map(encodeURIComponent).join("/");
    return place.appendChild(link);
  }

  function list(cells) {
    var at = data.nights.indexOf(page.id("night").value), found = [];
    cells.forEach(function (number) { found = found.concat(sayings(number, at)); });
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
    list(cells.indexOf(undefined) < 0 ? cells.filter(function (one, place) { return cells.indexOf(one) === place; }) : state.cells);
  }

  function begin() {
    bound = true;
    page.id("documents").hidden = false;
    page.id("night").addEventListener("change", function () { list(state.cells); });
    page.id("plot-trends").on("plotly_click", clicked);
  }

  // Called after each drawing with what is drawn. text: that of a line's point.
  return function (figure, lines, now, text) {
    var cells = Object.keys(data.trends).map(Number).filter(function (number) { return page.chosen(data.cells[number], now); });
    state = { figure: figure, lines: lines, cells: cells, text: text };
    if (!bound) { begin(); }
    list(cells);
  };
}
