// Throughput over the frame size, beside the theoretical maximum of each line speed.
function sizesPlot(page) {
  var data = page.data, plain = page.plain;

  function line(one) {
    var name = legendWords(page, "line rate (theoretical maximum)" + plain(one.speeds));
    return { x: one.x, y: one.line, type: "scatter", mode: "lines", name: name, legendgroup: name, line: { color: page.css("--soft"), width: 1.4, dash: "dash" }, hoverinfo: "text",
      hovertext: one.line.map(function (pps, at) { return name + "<br>" + page.mpps(pps) + " at " + one.x[at] + " B"; }) };
  }

  function found(one, series, number) {
    var look = page.look(data.cells[one.cell]), name = legendWords(page, plain(one.name) + ", loss ≤ " + page.digits(100 * series.loss) + " %");
    return { x: series.x, y: series.y, type: "scatter", mode: "lines+markers", name: name, line: { color: look.colour, width: 1.5, dash: number ? "dot" : "solid" },
      marker: { color: look.colour, size: 9 + 2 * number, symbol: series.bound.map(function (is) { return look.marker + (is ? "-open" : ""); }) }, hoverinfo: "text", hoverlabel: { align: "left" },
      hovertext: series.y.map(function (pps, at) {
        return "<b>" + name + "</b><br>" + (series.bound[at] ? "at least " : "") + page.mpps(pps) + " at " + series.x[at] + " B<br>" + page.digits(series.share[at]) + " % of line rate";
      }) };
  }

  // 1, 2, 5 of every power of ten, in words that have their unit.
  function ticks() {
    var values = [];
    for (var power = 2; power <= 9; power++) { [1, 2, 5].forEach(function (one) { values.push(one * Math.pow(10, power)); }); }
    return { type: "log", tickmode: "array", tickvals: values, ticktext: values.map(page.mpps) };
  }

  return function (now) {
    var traces = [], lines = [], shown = [], sizes = [];
    var ofDuts = data.sizes.filter(function (one) { return now.columns[data.cells[one.cell].column]; });
    var ofTraffic = ofDuts.filter(function (one) { return !now.traffic || (now.traffic === "bidir") === data.cells[one.cell].bidir; });
    (ofTraffic.length ? ofTraffic : ofDuts).forEach(function (one) {
      var cell = data.cells[one.cell], key = JSON.stringify([one.x, one.line]);
      shown.push(cell);
      if (lines.indexOf(key) < 0) { lines.push(key); traces.push(line(one)); }
      one.series.forEach(function (series, number) { traces.push(found(one, series, number)); });
      one.x.forEach(function (size) { if (sizes.indexOf(size) < 0) { sizes.push(size); } });
    });
    sizes.sort(function (a, b) { return a - b; });
    page.draw("sizes", traces, page.layout(shown, {
      xaxis: sizesAxis(page, "frame size with FCS, bytes", sizes.map(function (size) { return [size, String(size)]; }), [(sizes[0] || 64) / 1.2, 1.2 * (sizes[sizes.length - 1] || 1518)], 36),
      yaxis: page.axis("", ticks()), legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", font: { size: 11 } }
    }), 400 + 24 * traces.length);
  };
}
