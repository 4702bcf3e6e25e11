// How long frames took at shares of the throughput: the mean and the 99th percentile.
function latencyPlot(page) {
  var WIDE = 20; // times the least: an axis from zero would squeeze that
  var data = page.data, plain = page.plain;

  function told(one, name, what, value) {
    return "<b>" + name + "</b><br>" + what + " " + page.digits(value) + " µs<br>at " + page.digits(100 * one.share) + " % of the throughput, " +
      page.mpps(one.x) + (one.lossy ? "<br>" + page.digits(100 * one.loss) + " % of the frames were lost: full queues" : "");
  }

  return function (now) {
    var lines = new Map(), made = [], shown = [], share = now.unit === "share", kinds = page.ticked("older");
    data.latency.forEach(function (one) {
      if (!page.chosen(data.cells[one.cell], now) || (one.why && !page.wanted(one, kinds))) { return; }
      var key = [one.cell, one.direction, one.why ? one.night : ""].join(" ");
      lines.set(key, (lines.get(key) || []).concat(one));
    });
    lines.forEach(function (loads, key) {
      var first = loads[0], cell = data.cells[first.cell], look = page.look(cell, now, first.direction), older = first.why && page.olderStyle(first, look);
      var night = first.why ? plain(first.night) + ", " + plain(first.label) : plain(cell.night || "");
      var name = page.label(cell, now) + (cell.bidir ? ", " + plain(first.direction) : "") + (night && "<br>" + night), scale = share ? 100 / first.line : 1e-6;
      shown.push(cell);
      // One entry in the legend hides and shows both.
      [["mean", true, 1.8, "", look.ring], ["p99", false, 1, "-open", { width: 1.2 }]].forEach(function (kind) {
        var known = loads.filter(function (one) { return one[kind[0]] !== null; });
        if (!known.length || (kind[0] === "p99" && (older || !page.id("p99").checked))) { return; }
        made.push(Object.assign({ x: known.map(function (one) { return one.x * scale; }), y: known.map(function (one) { return one[kind[0]]; }),
          type: "scatter", mode: "lines+markers", name: name, legendgroup: key, showlegend: kind[1],
          hoverinfo: "text", hovertext: known.map(function (one) { return told(one, name, kind[0], one[kind[0]]); }) },
        older || { line: { color: look.colour, width: kind[2], dash: look.dash }, marker: { color: look.colour, size: look.size, symbol: look.marker + kind[3], line: kind[4] } }));
      });
    });
    var every = made.reduce(function (found, line) { return found.concat(line.y); }, []).filter(function (value) { return value > 0; });
    var wide = Math.max.apply(null, every) > WIDE * Math.min.apply(null, every);
    page.draw("latency", made, page.layout(shown, {
      xaxis: page.axis("offered, " + (share ? "% of line rate" : "Mpps"), { rangemode: "tozero" }),
      yaxis: page.axis("latency, µs", wide ? page.fitted(every) : { rangemode: "tozero" })
    }));
  };
}
