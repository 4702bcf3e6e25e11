// How long frames took at shares of the throughput: the mean and the 99th percentile.
function latencyPlot(page) {
  var WIDE = 20; // times the least: an axis from zero would squeeze that
  var data = page.data, plain = page.plain;

  function told(one, name, what, value) {
    return "<b>" + name + "</b><br>" + what + " " + page.digits(value) + " µs<br>at " + page.digits(100 * one.share) + " % of the throughput, " +
      page.mpps(one.x) + (one.lossy ? "<br>" + page.digits(100 * one.loss) + " % of the frames were lost: full queues" : "");
  }

  return function (now) {
    var lines = {}, made = [], shown = [], share = now.unit === "share";
    data.latency.forEach(function (one) {
      if (!page.chosen(data.cells[one.cell], now)) { return; }
      var key = one.cell + " " + one.direction;
      (lines[key] = lines[key] || []).push(one);
    });
    Object.keys(lines).forEach(function (key) {
      var loads = lines[key], first = loads[0], cell = data.cells[first.cell], look = page.look(cell);
      var name = page.label(cell, now) + (cell.bidir ? ", " + plain(first.direction) : ""), scale = share ? 100 / first.line : 1e-6;
      shown.push(cell);
      // One entry in the legend hides and shows both.
      [["mean", true, 1.8, "", cell.bidir && page.backwards(first) ? "dot" : look.dash], ["p99", false, 1, "-open", "3px 3px"]].forEach(function (kind) {
        var known = loads.filter(function (one) { return one[kind[0]] !== null; });
        if (!known.length || (kind[0] === "p99" && !page.id("p99").checked)) { return; }
        made.push({ x: known.map(function (one) { return one.x * scale; }), y: known.map(function (one) { return one[kind[0]]; }),
          type: "scatter", mode: "lines+markers", name: name, legendgroup: key, showlegend: kind[1], line: { color: look.colour, width: kind[2], dash: kind[4] },
          marker: { color: look.colour, size: 9, symbol: (now.mode && now.traffic ? look.marker : look.symbol) + kind[3] },
          hoverinfo: "text", hovertext: known.map(function (one) { return told(one, name, kind[0] === "mean" ? "mean" : "p99", one[kind[0]]); }) });
      });
    });
    var every = made.reduce(function (found, line) { return found.concat(line.y); }, []).filter(function (value) { return value > 0; });
    var wide = Math.max.apply(null, every) > WIDE * Math.min.apply(null, every);
    page.draw("latency", made, page.layout(shown, {
      xaxis: page.axis("offered, " + (share ? "% of line rate" : "Mpps"), { rangemode: "tozero" }),
      yaxis: page.axis("latency, µs", wide ? page.decades() : { rangemode: "tozero" })
    }));
  };
}
