// Plots made in Python (plots.py): the page gives them its colours, its width, and the choice.
function figurePlot(page, name) {
  var NARROW = 600, LETTER = 8; // pixels of the page, and of a letter of a tick
  var data = page.data, plain = page.plain, select = page.id(name + "-run");

  // Those of the chosen cells; where none of these goes the chosen ways, those of the chosen DUTs.
  function visible(lines, now) {
    function some(test) { return lines.filter(function (line) { return line.cells.some(function (at) { return now.columns[data.cells[at].column] && test(data.cells[at]); }); }); }
    var chosen = some(function (cell) { return !now.traffic || (now.traffic === "bidir") === cell.bidir; });
    return select ? lines : chosen.length ? chosen : some(function () { return true; });
  }

  function trace(line) {
    var colours = page.palette().colours, markers = page.palette().markers, words = plain(line.name), look;
    if (line.colour === null) { look = page.look(data.cells[line.cells[0]]); }
    if (typeof line.colour === "number") { look = { colour: colours[line.colour % colours.length], marker: markers[line.colour % markers.length] }; }
    if (typeof line.colour === "string") { look = { colour: page.css(line.colour) }; }
    return { x: line.x, y: line.y, type: "scatter", mode: line.bounds ? "lines+markers" : "lines", legendgroup: words,
      name: page.width() < NARROW ? words.replace(/(.{24,34}?) /g, "$1<br>") : words, line: { color: look.colour, width: 1.5, dash: line.dash },
      marker: { color: look.colour, size: line.dash === "solid" ? 9 : 11, symbol: (line.bounds || []).map(function (is) { return look.marker + (is ? "-open" : ""); }) },
      error_y: { type: "data", array: line.apart, visible: line.apart.length > 0, color: look.colour, thickness: 1.2, width: 4 }, hoverinfo: "text", hoverlabel: { align: "left" },
      hovertext: line.texts.map(function (text) { return "<b>" + words + "</b><br>" + page.wrapped(text); }) };
  }

  // Of the ticks those that have room beside each other.
  function axis(one, room) {
    if (!one.ticks.length) { return page.axis(plain(one.title), one.span ? { range: one.span } : { rangemode: "tozero" }); }
    var apart = LETTER * Math.max.apply(null, one.ticks.map(function (tick) { return tick[1].length; })), last = -Infinity;
    var kept = one.ticks.filter(function (tick) {
      var at = one.span ? Math.log(tick[0] / one.span[0]) / Math.log(one.span[1] / one.span[0]) * room : Infinity;
      if (at - last < apart) { return false; }
      last = one.span ? at : last;
      return true;
    });
    return page.axis(plain(one.title), { type: "log", tickmode: "array", tickvals: kept.map(function (tick) { return tick[0]; }), tickangle: 0,
      ticktext: kept.map(function (tick) { return plain(tick[1]); }), range: one.span ? one.span.map(Math.log10) : undefined });
  }

  return function (now) {
    var figure = data.figures[name][select ? Number(select.value) : 0], lines = visible(figure.lines, now), narrow = page.width() < NARROW;
    var shown = lines.map(function (line) { return data.cells[line.cells[0]]; });
    page.draw(name, lines.map(trace), page.layout(shown, {
      xaxis: axis(figure.x, page.width() - 110), yaxis: axis(figure.y),
      legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", font: { size: 11 } }
    }), 400 + (narrow ? 30 : 22) * lines.length);
  };
}
