// Cycles per packet over the rate: of each cell's latest run, and beside it those of older nights. Runs that held a given rate are one line.
function costsPlot(page) {
  var SAME = 1.05; // rates this close are one: a line between their points would be a slope of noise
  var data = page.data;

  // Runs at given rates are cells of their own.
  function family(cell) { return Object.assign({}, cell, { strategy: cell.given || cell.strategy }); }

  function trace(costs, what, name, style) {
    var x = costs.map(function (cost) { return cost.x / 1e6; }), apart = Math.max.apply(null, x) > SAME * Math.min.apply(null, x);
    return Object.assign({ x: x, y: costs.map(function (cost) { return cost[what]; }), type: "scatter", mode: apart ? "lines+markers" : "markers", name: name,
      hoverinfo: "text", hovertext: costs.map(function (cost) {
        return "<b>" + name + "</b><br>" + page.digits(cost[what]) + " cycles/packet<br>at " + page.mpps(cost.x) + ", " + page.plain(cost.phase) +
          (cost.vectors === null ? "" : "<br>" + page.digits(cost.vectors) + " vectors/call");
      }) }, style);
  }

  return function (now) {
    var made = [], shown = [], lines = new Map(), polling = page.id("polling").checked, kinds = page.ticked("older");
    data.costs.forEach(function (cost) {
      if (!page.chosen(data.cells[cost.cell], now) || (cost.why && !page.wanted(cost, kinds))) { return; }
      var cell = family(data.cells[cost.cell]), key = [cell.column, cell.mode, cell.bidir, cell.strategy, cost.why ? cost.night : ""].join("\n");
      lines.set(key, (lines.get(key) || []).concat(cost));
    });
    lines.forEach(function (costs) {
      var first = data.cells[costs[0].cell], cell = family(first), look = page.look(first, now), older = costs[0].why && page.olderStyle(costs[0], look);
      var nights = costs.map(function (cost) { return data.cells[cost.cell].night || ""; });
      cell.night = nights.some(function (night) { return night !== nights[0]; }) ? "several nights" : nights[0];
      var name = (older ? page.label : page.dated)(cell, now) + (older ? "<br>" + page.plain(costs[0].night) + ", " + page.plain(costs[0].label) : "");
      costs.sort(function (a, b) { return a.x - b.x; });
      shown.push(cell);
      [["y", name, ""], ["polling", name + ", with polling", "-open"]].forEach(function (kind) {
        var known = costs.filter(function (cost) { return cost[kind[0]]; });
        if (!known.length || (kind[0] === "polling" && (!polling || older))) { return; }
        made.push(trace(known, kind[0], kind[1], older || { line: { color: look.colour, width: 1.2, dash: look.dash },
          marker: { color: look.colour, size: look.size, symbol: look.marker + kind[2], line: kind[2] ? { width: 1.2 } : look.ring } }));
      });
    });
    function every(side) { return made.reduce(function (found, line) { return found.concat(line[side]); }, []); }
    page.draw("costs", made, page.layout(shown, {
      xaxis: page.axis("forwarded, Mpps", page.fitted(every("x"))),
      yaxis: page.axis("cycles/packet", page.fitted(every("y")))
    }));
  };
}
