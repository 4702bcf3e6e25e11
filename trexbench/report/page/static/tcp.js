// Runs of TCP: bars over the DUTs, what they cost beside them; and each leg over time.
function tcpPlots(page) {
  var ROW = 1.46, HEAD = 1.85, TOP = 3.4, BOTTOM = 3.54, BAR = 0.66; // heights of a bar's row, a DUT's head, a panel's edges, in letters; a bar's share of its row
  var USUAL_NAME = 13; // letters of a row's name; a longer one takes half a letter's size for each from the panels
  var ROOM = 1.55; // a panel reaches so many times as far as its longest bar: the numbers stand behind
  var data = page.data, plain = page.plain;

  // filled: a bar's length; open: that of the outlined one around it; words: the number beside them.
  var PANELS = [
    { title: "mean rate, Mbit/s", share: 2, filled: "rate", words: function (one) { return (one.bound ? "≥ " : "") + rounded(one.rate); } },
    { title: "router CPU, %", share: 1.2, filled: mean, open: function (one) { return one.hottest && one.hottest[1]; }, most: 100, room: 1.95, words: function (one) {
      return rounded(mean(one)) + (one.cores.length > 1 ? " (" + rounded(one.hottest[1]) + ")" : "");
    } },
    { title: "Mbit/s per % of a core", share: 1.3, filled: "efficiency", words: function (one) { return page.digits(one.efficiency); } },
    { title: "ping, ms", share: 1.3, filled: "idle", open: "loaded", room: 2, words: function (one) {
      return one.idle === null ? short(one.loaded) : short(one.idle) + (one.loaded === null ? "" : " (" + short(one.loaded) + ")");
    } },
    { title: "power, W", share: 0.8, filled: "power", words: function (one) { return page.digits(one.power); } }
  ];

  function mean(one) {
    return one.cores.length ? one.cores.reduce(function (sum, busy) { return sum + busy; }, 0) / one.cores.length : null;
  }

  function rounded(value) { return value >= 100 ? value.toFixed(0) : Number(value.toPrecision(3)).toString(); }

  function short(value) { return Number(value.toPrecision(3)).toString(); }

  function cut(text, most) { return text.length > most ? text.slice(0, most - 1) + "\u2026" : text; }

  function of(one, what) { return !what ? null : typeof what === "function" ? what(one) : one[what]; }

  function pings(one) {
    return [["idle", one.idle], ["loaded", one.loaded]].filter(function (ping) { return ping[1] !== null; })
      .map(function (ping) { return short(ping[1]) + " ms " + ping[0]; }).join(", ");
  }

  function told(one, now) {
    var cell = data.cells[one.cell], told = ["<b>" + plain(data.columns[cell.column].name) + ", " + plain(cell.tcp) + "</b>", plain(one.night)];
    told.push((one.bound ? "at least " : "") + page.digits(one.rate) + (one.apart === null ? "" : " ± " + page.digits(one.apart)) + " Mbit/s" +
      (one.line === null ? "" : ", " + page.digits(100 * one.rate / one.line) + " % of the line"));
    told.push(plain(one.limit) + one.why.map(function (why) { return "<br>" + page.wrapped(why); }).join(""));
    if (one.cores.length) {
      told.push("router CPU by core: " + one.cores.map(function (busy) { return rounded(busy); }).join(", ") + " %" +
        (one.efficiency === null ? "" : "<br>" + page.digits(one.efficiency) + " Mbit/s per % of a core"));
    }
    if (pings(one)) { told.push("ping " + pings(one)); }
    if (one.power !== null) { told.push(page.digits(one.power) + " W"); }
    return told.join("<br>");
  }

  // A head for each DUT, a row for each of its ways; where they stand, counted in rows from the top.
  function arranged(now, narrow) {
    var ways = page.ticked("tcp-way"), rows = [], heads = [], at = 0, last = null;
    data.tcp.forEach(function (one) {
      var cell = data.cells[one.cell];
      if (!now.columns[cell.column] || ways.indexOf(cell.mode) < 0) { return; }
      if (cell.column !== last) { heads.push({ at: at + HEAD / ROW / 2, column: cell.column }); at += HEAD / ROW; last = cell.column; }
      rows.push({ at: at + 0.5, one: one, cell: cell, name: plain(narrow ? cell.tcp.replace("IPv", "v").replace("unmonitored", "unmon.") : cell.tcp) });
      at += 1;
    });
    return { rows: rows, heads: heads, length: at };
  }

  function bar(rows, values, axes, style, now) {
    return Object.assign({ type: "bar", orientation: "h", x: values, y: rows.map(function (row) { return row.at; }), width: BAR, xaxis: axes.x, yaxis: axes.y,
      showlegend: false, hoverinfo: "text", hovertext: rows.map(function (row) { return told(row.one, now); }), hoverlabel: { align: "left" } }, style);
  }

  function panelTraces(panel, rows, axes, top, now) {
    var colours = rows.map(function (row) { return page.look(row.cell).colour; }), made = [];
    var filled = rows.map(function (row) { return of(row.one, panel.filled); }), open = rows.map(function (row) { return of(row.one, panel.open); });
    var rate = panel.filled === "rate";
    if (panel.open) {
      made.push(bar(rows, open, axes, { marker: { color: "rgba(0,0,0,0)", line: { color: colours, width: 1.2 } } }, now));
    }
    made.push(bar(rows, filled, axes, { marker: { color: colours, line: { color: colours, width: rate ? 1.2 : 0 },
      pattern: { shape: rows.map(function (row) { return rate && row.one.bound ? "/" : ""; }), fillmode: "replace", size: 6, solidity: 0.35 } },
      error_x: { type: "data", array: rows.map(function (row) { return row.one.apart || 0; }), visible: rate, color: page.css("--ink"), thickness: 1.4, width: 4 } }, now));
    var known = rows.filter(function (row) { return of(row.one, panel.filled) !== null || of(row.one, panel.open) !== null; });
    made.push({ type: "scatter", mode: "text", x: known.map(function () { return top; }), y: known.map(function (row) { return row.at; }), xaxis: axes.x, yaxis: axes.y,
      text: known.map(function (row) { return panel.words(row.one); }), textposition: "middle left", textfont: { size: 0.92 * page.letters() }, hoverinfo: "skip", showlegend: false, cliponaxis: false });
    return made;
  }

  function topOf(panel, rows) {
    var every = rows.map(function (row) {
      return Math.max(of(row.one, panel.filled) + (panel.filled === "rate" ? row.one.apart : 0), of(row.one, panel.open));
    });
    return (panel.room || ROOM) * (panel.most || Math.max.apply(null, every));
  }

  function bars(now) {
    var width = page.width(), found = arranged(now, width < 600), rows = found.rows, made = [], more = { barmode: "overlay", annotations: [] };
    var panels = PANELS.filter(function (panel) {
      return rows.some(function (row) { return of(row.one, panel.filled) !== null || of(row.one, panel.open) !== null; });
    });
    var longest = Math.max.apply(null, rows.map(function (row) { return row.name.length; }).concat(USUAL_NAME));
    var across = width / page.letters() - (longest - USUAL_NAME) / 2, abreast = across < 46 ? 1 : across < 57 ? 2 : across < 77 ? 3 : panels.length, bands = Math.ceil(panels.length / abreast) || 1;
    var band = found.length * ROW + TOP + BOTTOM, height = bands * band, most = width < 600 ? 20 : 80;
    panels.forEach(function (panel, number) {
      var line = Math.floor(number / abreast), same = panels.slice(line * abreast, (line + 1) * abreast), place = number - line * abreast;
      var total = same.reduce(function (sum, one) { return sum + one.share; }, 0), gap = 0.03;
      var before = same.slice(0, place).reduce(function (sum, one) { return sum + one.share; }, 0);
      var axes = { x: "x" + (number || "").toString().replace(/\d+/, String(number + 1)), y: "y" + (line ? String(line + 1) : "") };
      var top = topOf(panel, rows), keyX = "xaxis" + axes.x.slice(1), keyY = "yaxis" + axes.y.slice(1);
      made = made.concat(panelTraces(panel, rows, axes, top, now));
      more[keyX] = page.axis("", { domain: [before / total + (place ? gap / 2 : 0), (before + panel.share) / total - (place < same.length - 1 ? gap / 2 : 0)],
        anchor: axes.y, range: [0, top], fixedrange: true, nticks: 4, tickangle: 0, zeroline: false, tickvals: panel.most ? [0, 50, 100] : undefined });
      if (!place) {
        more[keyY] = page.axis("", { domain: [1 - (line * band + TOP + found.length * ROW) / height, 1 - (line * band + TOP) / height], range: [found.length, 0], fixedrange: true,
          tickvals: rows.map(function (row) { return row.at; }), ticktext: rows.map(function (row) { return row.name; }), showgrid: false, zeroline: false, anchor: axes.x });
        found.heads.forEach(function (head) {
          more.annotations.push({ text: "<b>" + plain(cut(data.columns[head.column].name, most)) + "</b>", x: 0, xref: axes.x + " domain", xanchor: "left", y: head.at, yref: axes.y, showarrow: false });
        });
      }
      more.annotations.push({ text: plain(panel.title), x: 0, xref: axes.x + " domain", xanchor: "left", y: 1, yref: axes.y + " domain", yanchor: "bottom", yshift: 4, showarrow: false });
    });
    more.margin = { l: 10, r: 14, t: 0, b: 0 };
    page.draw("tcp", made, page.layout(rows.map(function (row) { return row.cell; }), more), height * page.letters());
  }

  function series(now) {
    var made = [], shown = [], narrow = page.width() < 600, every = [];
    var chosen = data.tcp.filter(function (one) { return page.chosen(data.cells[one.cell], now) && one.series.length; });
    chosen.forEach(function (one) {
      var cell = data.cells[one.cell], look = page.look(cell, now), ping = pings(one);
      shown.push(cell);
      one.series.forEach(function (line, number) {
        var key = one.cell + " " + number, name = page.dated(cell, now) + (line.name ? ", " + plain(line.name) : "");
        [["y", "y", "Mbit/s"], ["again", "y2", "segments/s sent again"], ["rtt", "y3", "ms round trip"]].forEach(function (part, at) {
          var values = line[part[0]];
          if (part[0] === "rtt") { every = every.concat(values.filter(Boolean)); }
          made.push({ x: line.x, y: values, yaxis: part[1], type: "scatter", mode: values.length < 3 ? "markers" : "lines", name: name + (ping && !narrow ? "<br>ping " + ping : ""), legendgroup: key,
            showlegend: !at, connectgaps: false, line: { color: look.colour, width: number ? 1 : 1.6, dash: number ? "dot" : look.dash }, marker: { color: look.colour, symbol: look.marker, size: 7 },
            hoverinfo: "text", hovertext: values.map(function (value, place) {
              return value === null ? "" : "<b>" + name + "</b><br>" + page.digits(value) + " " + part[2] + "<br>at " + page.digits(line.x[place]) + " s" + (ping ? "<br>ping " + ping : "");
            }) });
        });
      });
    });
    var wide = every.length && Math.max.apply(null, every) > 20 * Math.min.apply(null, every);
    // Under the plot the legend takes its place.
    var legend = narrow || page.printed() ? 600 + 20 * chosen.length : 0;
    page.draw("series", made, page.layout(shown, {
      xaxis: page.axis("since the leg began, s", { anchor: "y3", rangemode: "tozero" }),
      yaxis: page.axis("Mbit/s", { domain: [0.5, 1], rangemode: "tozero" }),
      yaxis2: page.axis("retransmits/s", { domain: [0.25, 0.44], rangemode: "tozero" }),
      yaxis3: page.axis("round trip, ms", Object.assign({ domain: [0, 0.19] }, wide ? page.decades() : { rangemode: "tozero" }))
    }), legend);
  }

  return { bars: bars, series: series };
}
