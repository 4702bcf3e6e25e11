// What two plots share: an axis of sizes, whose numbers stand at the sizes that were measured, and words that fit a phone.
function sizesAxis(page, title, ticks, span, apart) {
  var reach = Math.log2(span[1] / span[0]), room = page.width() - 110, last = -Infinity;
  var kept = ticks.filter(function (tick) {
    var at = Math.log2(tick[0] / span[0]) / reach * room;
    if (at - last < apart) { return false; }
    last = at;
    return true;
  });
  return page.axis(title, { type: "log", tickmode: "array", tickvals: kept.map(function (tick) { return tick[0]; }), tickangle: 0,
    ticktext: kept.map(function (tick) { return page.plain(tick[1]); }), range: span.map(Math.log10) });
}

function legendWords(page, name) { return page.width() < 600 ? name.replace(/(.{24,34}?) /g, "$1<br>") : name; }

// TCP over a WAN: the rate over the size of the buffers, beside what window, line and losses allow.
function wanPlot(page) {
  var data = page.data, plain = page.plain;
  var BOUNDS = { window: ["--ink", "solid"], line: ["--soft", "dash"], loss: ["--bad", "dot"] };

  function scaled(values, unit) { return values.map(function (value) { return value === null ? null : value * unit.scale; }); }

  function measured(series, number, unit) {
    var colours = page.palette().colours, markers = page.palette().markers;
    var look = { colour: colours[number % colours.length], marker: markers[number % markers.length] }, name = legendWords(page, "measured, " + plain(series.name));
    return { x: series.x, y: scaled(series.y, unit), type: "scatter", mode: "lines+markers", name: name, line: { color: look.colour, width: 1.4, dash: number ? "dash" : "solid" },
      marker: { color: look.colour, size: 9, symbol: series.bound.map(function (is) { return look.marker + (is ? "-open" : ""); }) },
      error_y: { type: "data", array: scaled(series.apart, unit), visible: true, color: look.colour, thickness: 1.2, width: 4 }, hoverinfo: "text", hoverlabel: { align: "left" },
      hovertext: series.x.map(function (_, at) {
        return "<b>" + name + "</b><br>buffers of " + plain(series.size[at]) + "<br>" + (series.bound[at] ? "at least " : "") + page.digits(series.y[at]) + " Mbit/s" +
          (series.apart[at] ? " ± " + page.digits(series.apart[at]) : "") + "<br>" + page.wrapped(series.words[at]);
      }) };
  }

  function bound(one, unit) {
    var look = BOUNDS[one.kind], name = legendWords(page, plain(one.name));
    return { x: one.x, y: scaled(one.y, unit), type: "scatter", mode: "lines", name: name, line: { color: page.css(look[0]), width: 1.6, dash: look[1] },
      hoverinfo: "text", hovertext: one.y.map(function (value) { return name + "<br>" + page.digits(value) + " Mbit/s"; }) };
  }

  return function (now) {
    var run = data.wans[Number(page.id("wan").value)], unit = run.top > 2000 ? { name: "Gbit/s", scale: 1e-3 } : { name: "Mbit/s", scale: 1 };
    var traces = run.bounds.map(function (one) { return bound(one, unit); }).concat(run.series.map(function (one, number) { return measured(one, number, unit); }));
    page.draw("wans", traces, page.layout([data.cells[run.cell]], {
      xaxis: sizesAxis(page, "buffers of both hosts", run.ticks, run.span, 56),
      yaxis: page.axis("payload received, " + unit.name, { range: [0, run.top * unit.scale] }),
      legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", font: { size: 11 } }
    }), (page.width() < 600 ? 400 : 440) + (page.width() < 600 ? 30 : 12) * traces.length);
  };
}
