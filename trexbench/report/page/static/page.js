"use strict";
(function () {
  // Okabe and Ito's colours; on a dark ground the same hues, lighter.
  var LIGHT = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222", "#999933"];
  var DARK = ["#56B4E9", "#F0803C", "#2FC79A", "#E69AC4", "#F0C442", "#8AB4F8", "#EEEEEE", "#C5C56A"];
  var DASHES = ["solid", "dash", "longdash", "dashdot", "longdashdot", "8px 2px"];
  var MARKERS = ["circle", "square", "diamond", "triangle-up", "pentagon", "star", "hexagon", "cross"];
  var CONFIG = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["lasso2d", "select2d", "sendChartToCloud"] };
  var data = JSON.parse(document.getElementById("data").textContent);
  [data.curves, data.older, data.latency, data.tcp, data.trends].forEach(function (lines) {
    lines.sort(function (a, b) { return data.cells[a.cell].column - data.cells[b.cell].column; });
  });
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  var touched = window.matchMedia("(pointer: coarse)"); // a swipe over a plot scrolls the page
  var printing = false, PAPER = 680;

  function id(name) { return document.getElementById(name); }

  function all(selector) { return Array.prototype.slice.call(document.querySelectorAll(selector)); }

  // The plots read a few tags and entities in text: none of ours shall be one.
  function plain(text) {
    return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\$/g, "&#36;")
      .replace(/-&gt;/g, "\u2192").replace(/&gt;= /g, "\u2265 ").replace(/(\d) us\b/g, "$1 \u00b5s");
  }

  // A page without packets, or without TCP, lacks the controls of those.
  function selected(name) { return id(name) ? id(name).value : ""; }

  function ticked(name) {
    return all("input[name=" + name + "]").filter(function (box) { return box.checked; }).map(function (box) { return box.value; });
  }

  function choice() {
    var picked = {};
    all("input[name=column]").forEach(function (box) { picked[box.value] = box.checked; });
    return { mode: selected("mode"), traffic: selected("traffic"), unit: selected("unit"), tcp: selected("tcp-mode"), columns: picked };
  }

  function chosen(cell, now) {
    if (cell.tcp) { return (!now.tcp || cell.mode === now.tcp) && now.columns[cell.column]; }
    return (!now.mode || cell.mode === now.mode) && (!now.traffic || (now.traffic === "bidir") === cell.bidir) &&
      now.columns[cell.column];
  }

  // What is told of a cell beside its DUT: only what the choice leaves open.
  function label(cell, now) {
    var parts = [data.columns[cell.column].name];
    if (cell.tcp) { return plain(parts.concat(now.tcp ? [] : [cell.tcp]).join(" ")); }
    if (!now.mode) { parts.push(cell.mode); }
    if (!now.traffic) { parts.push(cell.bidir ? "bidir" : "uni"); }
    if (cell.strategy) { parts.push(cell.strategy); }
    return plain(parts.join(" "));
  }

  // With several modes of TCP at once they, not the DUTs, have the dashes: colours tell the DUTs.
  function look(cell, now) {
    var modes = [];
    data.cells.forEach(function (one) {
      var key = one.mode + " " + one.bidir;
      if (modes.indexOf(key) < 0) { modes.push(key); }
    });
    var colours = dark.matches && !printing ? DARK : LIGHT;
    return {
      colour: colours[cell.column % colours.length],
      marker: MARKERS[cell.column % MARKERS.length],
      dash: DASHES[(cell.tcp && now && !now.tcp ? modes.indexOf(cell.mode + " " + cell.bidir) : cell.column + Math.floor(cell.column / colours.length)) % DASHES.length],
      symbol: MARKERS[modes.indexOf(cell.mode + " " + cell.bidir) % MARKERS.length]
    };
  }

  // 1, 2, 5 of every power of ten: an axis without words between its numbers.
  function decades() {
    var values = [];
    for (var power = -6; power <= 9; power++) { [1, 2, 5].forEach(function (one) { values.push(one * Math.pow(10, power)); }); }
    return { type: "log", tickmode: "array", tickvals: values, ticktext: values.map(function (value) { return digits(value); }) };
  }

  function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

  function axis(title, more) {
    return Object.assign({ title: { text: title, standoff: 8 }, gridcolor: css("--grid"), linecolor: css("--line"),
      zerolinecolor: css("--line"), showline: true, automargin: true }, more || {});
  }

  function layout(shown, more) {
    var narrow = document.documentElement.clientWidth < 640;
    var notes = shown.some(function (cell) { return data.columns[cell.column].simulated; }) ? [{
      text: "SIMULATED", xref: "paper", yref: "paper", x: 0.5, y: 0.5, showarrow: false, opacity: 0.13, textangle: -24,
      font: { size: narrow ? 38 : 68, color: css("--bad") }
    }] : [];
    var base = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest", dragmode: touched.matches ? false : "zoom", annotations: notes,
      font: { color: css("--ink"), family: "system-ui, sans-serif", size: narrow ? 11 : 13 },
      margin: { l: 60, r: 14, t: 34, b: 44 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--soft"), activecolor: css("--link") }, hoverlabel: { bgcolor: css("--panel"), bordercolor: css("--line"), font: { color: css("--ink") } },
      legend: narrow || printing ? { orientation: "h", yref: "container", y: 0, yanchor: "bottom", font: { size: 11 } } : { x: 1.01, y: 1 }, uirevision: "stay"
    };
    Object.keys(more).forEach(function (key) { base[key] = key === "annotations" ? base[key].concat(more[key]) : more[key]; });
    return base;
  }

  function digits(value) { return Number(value.toPrecision(4)).toString(); }

  function mpps(pps) { return pps >= 1e6 ? digits(pps / 1e6) + " Mpps" : digits(pps / 1e3) + " kpps"; }

  // height: in pixels, where it follows from what is drawn.
  function draw(name, traces, shape, height) {
    var place = id("plot-" + name);
    if (!place) { return; }
    place.style.height = height ? height + "px" : "";
    window.Plotly.react(place, traces, shape, CONFIG);
  }

  function width() { return printing ? PAPER : document.documentElement.clientWidth; }

  function drawCosts(now) {
    var groups = {}, traces = [], shown = [];
    data.costs.forEach(function (cost) {
      var cell = data.cells[cost.cell];
      if (!chosen(cell, now)) { return; }
      (groups[cost.cell] = groups[cost.cell] || []).push(cost);
    });
    Object.keys(groups).forEach(function (at) {
      var cell = data.cells[at], style = look(cell), name = label(cell, now);
      var costs = groups[at].sort(function (a, b) { return a.x - b.x; });
      shown.push(cell);
      [["y", name, ""], ["polling", name + ", with polling", "-open"]].forEach(function (kind) {
        var known = costs.filter(function (cost) { return cost[kind[0]]; });
        if (!known.length || (kind[0] === "polling" && !id("polling").checked)) { return; }
        traces.push({ x: known.map(function (cost) { return cost.x / 1e6; }), y: known.map(function (cost) { return cost[kind[0]]; }),
          type: "scatter", mode: "lines+markers", name: kind[1], line: { color: style.colour, width: 1, dash: style.dash },
          marker: { color: style.colour, size: 9, symbol: (now.mode && now.traffic ? style.marker : style.symbol) + kind[2] },
          hoverinfo: "text", hovertext: known.map(function (cost) {
            return "<b>" + kind[1] + "</b><br>" + digits(cost[kind[0]]) + " cycles/packet<br>at " + mpps(cost.x) + ", " + plain(cost.phase) +
              (cost.vectors === null ? "" : "<br>" + digits(cost.vectors) + " vectors/call");
          }) });
      });
    });
    draw("costs", traces, layout(shown, {
      xaxis: axis("forwarded, Mpps", decades()),
      yaxis: axis("cycles/packet", decades())
    }));
  }

  function drawTrends(now) {
    var metric = data.metrics.filter(function (one) { return one.name === id("metric").value; })[0];
    if (!metric) { return; }
    var traces = [], shown = [], shapes = [], notes = [], failed = { x: [], y: [], text: [] };
    var share = metric.unit === "Mpps" && now.unit === "share";
    data.trends.forEach(function (trend) {
      var cell = data.cells[trend.cell], values = trend.values[metric.name];
      if (!chosen(cell, now)) { return; }
      var style = look(cell, now), name = label(cell, now);
      var scale = share && trend.line[0] ? 100 / trend.line[0] : metric.scale, unit = share ? " % of line rate" : " " + metric.unit;
      shown.push(cell);
      trend.failed.forEach(function (one) {
        failed.x.push(one[0]); failed.y.push(0.03); failed.text.push("<b>" + name + "</b>, " + plain(one[0]) + "<br>" + wrapped(one[1]));
      });
      if (!values) { return; }
      var bounds = values.map(function (_, at) { return metric.bounded && trend.bound[at]; });
      traces.push({ x: trend.x, y: values.map(function (value) { return value === null ? null : value * scale; }), type: "scatter",
        mode: "lines+markers", name: name, legendgroup: name, connectgaps: false, line: { color: style.colour, width: 1.2, dash: style.dash },
        marker: { color: style.colour, size: trend.x.length > 90 ? 4 : 6.5,
          symbol: bounds.map(function (is) { return is ? "triangle-up-open" : style.marker; }) },
        hoverinfo: "text", hovertext: values.map(function (value, at) {
          return value === null ? "" : "<b>" + name + "</b>, " + plain(trend.x[at]) + "<br>" + (bounds[at] ? "at least " : "") + digits(value * scale) + unit;
        }) });
      trend.changes.forEach(function (change) {
        if (change.metric !== metric.name) { return; }
        shapes.push({ type: "line", x0: change.x, x1: change.x, yref: "paper", y0: 0, y1: 1,
          line: { color: change.bad ? css("--bad") : css("--good"), width: 1.5, dash: "dash" } });
        notes.push({ x: change.x, yref: "paper", y: 1, yanchor: "bottom", showarrow: false, text: change.bad ? "\u25bc" : "\u25b2",
          font: { color: change.bad ? css("--bad") : css("--good") }, hovertext: wrapped(change.text) });
        levels(trend, change).forEach(function (level) {
          shapes.push({ type: "line", x0: level[0], x1: level[1], y0: level[2] * scale, y1: level[2] * scale,
            line: { color: style.colour, width: 3 }, opacity: 0.55 });
        });
      });
    });
    if (failed.x.length) {
      traces.push({ x: failed.x, y: failed.y, yaxis: "y2", type: "scatter", mode: "markers", name: "failed", hoverinfo: "text", hovertext: failed.text,
        marker: { symbol: "x", size: 8, color: css("--bad") } });
    }
    draw("trends", traces, layout(shown, {
      xaxis: axis("", { type: "date" }), shapes: shapes, annotations: notes,
      yaxis: axis(plain(metric.name) + (share ? ", % of line rate" : ", " + plain(metric.unit)), { rangemode: id("zero").checked ? "tozero" : "normal" }),
      yaxis2: { overlaying: "y", range: [0, 1], visible: false, fixedrange: true }
    }));
  }

  function levels(trend, change) {
    var found = [], first = trend.x[0], last = trend.x[trend.x.length - 1];
    if (change.before !== null) { found.push([first, change.x, change.before]); }
    if (change.after !== null) { found.push([change.x, last, change.after]); }
    return found;
  }

  function wrapped(text) {
    return plain(text).replace(/(.{40,60}?) /g, "$1<br>");
  }

  function backwards(one) { return Number(one.direction.split("->")[0]) > Number(one.direction.split("->")[1]); }

  var tools = { printed: function () { return printing; }, ticked: ticked, width: width, wrapped: wrapped, data: data, id: id, all: all, plain: plain, chosen: chosen, label: label, look: look, css: css, axis: axis,
    layout: layout, digits: digits, mpps: mpps, decades: decades, backwards: backwards, draw: draw };
  var drawRamps = rampsPlot(tools), drawLatency = latencyPlot(tools), tcp = tcpPlots(tools);

  function drawAll() {
    var now = choice();
    if (id("plot-tcp")) { tcp.bars(now); tcp.series(now); }
    if (id("plot-ramps")) { drawRamps(now); }
    if (id("plot-costs")) { drawCosts(now); }
    if (id("plot-latency")) { drawLatency(now); }
    if (id("plot-trends")) { drawTrends(now); }
  }

  function settle() {
    ["controls"].map(id).concat(all(".switches")).forEach(function (part) { if (part) { part.hidden = false; } });
    all(".controls, .switches").forEach(function (part) { part.addEventListener("change", drawAll); });
    id("controls").addEventListener("submit", function (event) { event.preventDefault(); });
    all(".plot").forEach(function (place) { place.classList.add("drawn"); });
    all("[data-show]").forEach(function (link) { link.addEventListener("click", function () { show(JSON.parse(link.dataset.show)); }); });
    dark.addEventListener("change", drawAll);
    window.addEventListener("beforeprint", function () { paper(true); });
    window.addEventListener("afterprint", function () { paper(false); });
  }

  // A change's own cells and figure, and their ramps before and after it.
  function show(wanted) {
    Object.keys(wanted).forEach(function (name) { if (id(name)) { id(name).value = wanted[name]; } });
    all("input[name=column], input[name=older][value=change]").forEach(function (box) { box.checked = true; });
    drawAll();
  }

  // On paper: a page's width, no dark ground, everything unfolded that is short.
  function paper(on) {
    printing = on;
    all("#table details, #changes details").forEach(function (part) { part.open = on; });
    drawAll();
    all(".plot").forEach(function (place) {
      var height = parseInt(place.style.height, 10) || (place.classList.contains("tall") ? 560 : 400);
      if (place.data) {
        window.Plotly.relayout(place, on ? { width: PAPER, height: height, autosize: false } : { width: null, height: null, autosize: true });
      }
    });
  }

  async function unpack() {
    var packed = atob(id("library").textContent), bytes = new Uint8Array(packed.length);
    for (var at = 0; at < packed.length; at++) { bytes[at] = packed.charCodeAt(at); }
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  async function begin() {
    if (!id("controls")) { document.documentElement.dataset.ready = "nothing to draw"; return; }
    if (typeof DecompressionStream === "undefined") { id("plain").hidden = false; return; }
    var script = document.createElement("script");
    script.textContent = await unpack();
    document.head.appendChild(script); // the page's policy knows its digest
    if (!window.Plotly) { id("plain").hidden = false; return; }
    settle();
    drawAll();
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  }

  begin();
})();
