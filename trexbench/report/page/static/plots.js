"use strict";
// Plots made in Python (plots.py): the page filters their lines by the reader's choice, switches between the scales that they come with, and lends colours and width.
function figurePlot(page, name) {
  var NARROW = 600, LETTER = 8, SIGNS = 9; // pixels of the page, and of a letter of a tick; markers along a line at most
  var DAY = 864e5, PANELS = 40, NARROW_PANELS = 16, PRINTED_PANELS = 15, TOGETHER = 2, LEAST_SPAN = 4; // percent of an axis of trends, so that noise does not fill it
  var ROW = 1.46, HEAD = 1.85, TOP = 3.4, BOTTOM = 3.54, ROOM = 1.55; // heights of a row, a DUT's head, a panel's edges, in letters; panels reach beyond their figures, as words stand there
  var drawn = []; // lines of the last drawing
  var data = page.data, plain = page.plain, select = document.querySelector(".switches[data-for=" + name + "] select.run");

  function narrow() { return page.width() < NARROW; }

  function goes(cell, figure, now) {
    var dut = now.columns[cell.column];
    return figure.follows === "none" || (figure.follows === "cells" ? page.chosen(cell, now) : dut && (figure.follows === "duts" || !now.traffic || (now.traffic === "bidir") === cell.bidir));
  }

  function ticked(tag, values) {
    var box = page.id(tag);
    return box ? box.checked : page.ticked(tag).some(function (one) { return values.indexOf(one) >= 0; });
  }

  // Those of the chosen cells; where none of these goes the chosen ways, those of the chosen DUTs.
  function visible(figure, now) {
    function some(test) { return figure.lines.filter(function (line) { return line.cells.some(function (at) { return test(data.cells[at]); }); }); }
    var tagged = some(function (cell) { return goes(cell, figure, now); });
    if (!figure.follows && !tagged.length) { tagged = some(function (cell) { return now.columns[cell.column]; }); }
    return tagged.filter(function (line) { return Object.keys(line.tags || {}).every(function (tag) { return ticked(tag, line.tags[tag]); }); });
  }

  // The reader's, as far as each line has it.
  function scaleOf(figure, lines, now) {
    var off = page.id("relative"), able = figure.form === "grid" && panelled(lines).length > 1 && lines.every(function (line) { return line.scales.relative; });
    if (figure.form === "grid") { off.disabled = !able; page.id("zero").disabled = able && off.checked; }
    var wanted = able && off.checked ? "relative" : now.unit, titles = figure.y.titles || figure.x.titles || {};
    return titles[wanted] && lines.every(function (line) { return line.scales[wanted]; }) ? wanted : titles.own ? "own" : "pps";
  }

  function across(line) { return data.arrays[line.x]; }

  function scaled(line, value, scale) {
    var of = scale && line.scales && line.scales[scale];
    return value === null || !of ? value : of[0] * value + of[1];
  }

  function signed(value) { return (value.toFixed(1) === "0.0" || value.toFixed(1) === "-0.0" ? "" : value < 0 ? "\u2212" : "+") + Math.abs(value).toFixed(1); }

  // A text of all points names figures in braces.
  function text(line, at) {
    if (typeof line.texts !== "string") { return line.texts[at]; }
    return (line.bounds && line.bounds[at] ? "at least " : "") + line.texts.replace(/\{(\w+)(?:\.(\w+))?(\+|:pps)?\}/g, function (_, of, scale, form) {
      var value = of === "x" ? across(line)[at] : of === "y" ? line.y[at] : line.more[of][at];
      if (typeof value === "string") { return value; }
      value = scaled(line, value, scale);
      return form === ":pps" ? page.mpps(1e6 * value) : form ? signed(value) : page.digits(value);
    });
  }

  function label(line, figure, now) {
    var cell = data.cells[line.cells[0]], of = line.cells.length > 1 && cell.given ? Object.assign({}, cell, { strategy: cell.given }) : cell;
    var words = figure.cells ? page.label(of, now) + plain(line.name || "") : plain(line.name || "");
    var dated = line.night && (!line.beside || drawn.some(function (one) { return one.tags && one.tags.older && one.cells[0] === line.cells[0]; }));
    return words + (dated ? "<br>" + plain(line.night) : "");
  }

  function colourOf(line) {
    var colours = page.palette().colours, of = line.colour;
    if (typeof of === "string") { return page.css(of); }
    return colours[(of === undefined ? data.cells[line.cells[0]].column : of) % colours.length];
  }

  function symbols(line) {
    var markers = page.palette().markers, own = line.marker || markers[(line.colour === undefined ? data.cells[line.cells[0]].column : line.colour) % markers.length];
    return line.bounds ? line.bounds.map(function (is) { return own + (is ? "-open" : ""); }) : own;
  }

  // What is known of a point: its night, its text, and what changed then.
  function told(line, at, words) {
    var x = across(line)[at], marks = (line.marks || []).filter(function (mark) { return mark.x === x; });
    return ["<b>" + words + "</b>"].concat(text(line, at).split("; ").map(page.wrapped), marks.map(function (mark) {
      return "<span style=\"color:" + page.css(mark.colour) + "\">" + plain(mark.words) + "</span> " + page.wrapped(mark.text);
    })).join("<br>");
  }

  // along, up: how its figures are drawn; axes: of its panel.
  function trace(line, figure, words, along, up, axes, more) {
    var colour = colourOf(line), marked = line.marker || (line.bounds && !figure.dated), x = across(line), joined = line.dash !== "none", few = x.length < 3 * SIGNS;
    var thin = /-(thin|open)/.test(line.marker || "") || line.bounds;
    return Object.assign({ x: x.map(function (value) { return along(line, value); }), y: line.y.map(function (value) { return up(line, value); }), xaxis: axes.x, yaxis: axes.y, type: "scatter",
      mode: joined ? marked ? "lines+markers" : "lines" : "markers", name: narrow() ? words.replace(/([^<>]{24,34}?) /g, "$1<br>") : words, legendgroup: line.cells[0] + words, 
      connectgaps: false, opacity: line.opacity || 1, meta: line.cells[0], line: { color: colour, width: line.width || 1.5, dash: joined ? line.dash || "solid" : "solid" },
      marker: { color: colour, size: line.size || 9, symbol: symbols(line), maxdisplayed: few || figure.dated ? 0 : SIGNS, line: { width: thin ? 1.6 : 1, color: thin ? colour : page.css("--ground") } },
      error_y: { type: "data", array: line.apart || [], visible: Boolean(line.apart), color: colour, thickness: 1.2, width: 4 },
      error_x: line.within ? { type: "data", symmetric: false, array: [along(line, line.within[1]) - along(line, x[0])], arrayminus: [along(line, x[0]) - along(line, line.within[0])], color: colour } : { visible: false },
      hoverinfo: "text", hoverlabel: { align: "left" }, hovertext: line.y.map(function (value, at) {
        return value === null ? "" : told(line, at, (figure.dated ? plain(data.nights[x[at]]) + ", " : "") + words);
      }) }, more || {});
  }

  // Lines of a cell and a night have one entry in the legend, which hides and shows all of them.
  function shownOnce(traces) {
    traces.forEach(function (one, at) { one.showlegend = traces.findIndex(function (other) { return other.legendgroup === one.legendgroup; }) === at; });
  }

  // One entry for each kind of marker that is drawn.
  function keys(figure, lines) {
    return (figure.keys || []).filter(function (_, at) { return lines.some(function (line) { return line.key === at; }); }).map(function (key) {
      return { x: [null], y: [null], type: "scatter", mode: "markers", name: plain(key[1]), hoverinfo: "skip", legendrank: 2000,
        marker: { symbol: key[0], size: 10, color: page.css("--soft"), line: { width: 1.6, color: page.css("--soft") } } };
    });
  }

  // Of the ticks those that have room beside each other.
  function axis(one, scale, values, room) {
    var title = plain(one.titles ? one.titles[scale] : one.title || "");
    if (!one.ticks || (one.switch && !page.id(one.switch).checked)) { return page.axis(title, one.fit ? page.fitted(values) : one.span && !one.switch ? { range: one.span } : { rangemode: "tozero" }); }
    var apart = LETTER * Math.max.apply(null, one.ticks.map(function (tick) { return tick[1].length; })), last = -Infinity;
    var kept = one.ticks.filter(function (tick) {
      var at = one.span ? Math.log(tick[0] / one.span[0]) / Math.log(one.span[1] / one.span[0]) * room : Infinity;
      if (at - last < apart) { return false; }
      last = one.span ? at : last;
      return true;
    });
    return page.axis(title, { type: "log", tickmode: "array", tickvals: kept.map(function (tick) { return tick[0]; }), tickangle: 0,
      ticktext: kept.map(function (tick) { return plain(tick[1]); }), range: one.span ? one.span.map(Math.log10) : undefined });
  }

  function cellsOf(lines) { return lines.map(function (line) { return data.cells[line.cells[0]]; }); }

  function panelNumber(number) { return number ? String(number + 1) : ""; }

  // Panels below each other; older nights under the latest.
  function stack(figure, lines, now) {
    var scale = scaleOf(figure, lines, now), below = figure.below || [], foot = panelNumber(below.length), more = {}, room = page.width() - 110;
    var each = 1 - 1 / (1 + below.length / 2);
    function along(line, value) { return figure.x.titles ? scaled(line, value, scale) : value; }
    function up(line, value) { return figure.y.titles && !line.panel ? scaled(line, value, scale) : value; }
    function values(panel, of) { return [].concat.apply([], lines.filter(function (line) { return panel === null || (line.panel || 0) === panel; }).map(of)).filter(function (value) { return value > 0; }); }
    var traces = lines.map(function (line, at) {
      return trace(line, figure, label(line, figure, now), along, up, { x: "x", y: "y" + panelNumber(line.panel || 0) }, { legendrank: 1000 + at });
    });
    shownOnce(traces);
    function old(line) { return line.tags && line.tags.older ? 0 : 1; }
    traces = traces.map(function (one, at) { return [old(lines[at]), one]; }).sort(function (a, b) { return a[0] - b[0]; }).map(function (pair) { return pair[1]; });
    if (figure.diagonal) {
      var top = Math.max.apply(null, values(0, function (line) { return across(line).map(function (value) { return along(line, value); }); }).concat(0));
      traces.push({ x: [0, top], y: [0, top], type: "scatter", mode: "lines", name: plain(figure.diagonal), hoverinfo: "skip", legendrank: 1e6, line: { color: page.css("--soft"), width: 1, dash: "dot" } });
    }
    more.xaxis = Object.assign(axis(figure.x, scale, values(null, function (line) { return across(line).map(function (value) { return along(line, value); }); }), room), { anchor: "y" + foot });
    more.shapes = [];
    [figure.y].concat(below).forEach(function (one, panel) {
      var high = below.length ? each / below.length : 0;
      more["yaxis" + panelNumber(panel)] = Object.assign(axis(one, scale, values(panel, function (line) { return line.y; })),
        { domain: panel ? [(below.length - panel) * high, (below.length - panel + 1) * high - 0.06] : [each, 1], fixedrange: Boolean(one.switch) });
      if (one.limit) { more.shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, yref: "y" + panelNumber(panel), y0: one.limit, y1: one.limit, line: { color: page.css("--bad"), width: 1, dash: "dash" } }); }
    });
    var under = figure.follows !== "cells", own = traces.filter(function (one) { return one.showlegend; }).length;
    if (under) { more.legend = { orientation: "h", yref: "container", y: 0, yanchor: "bottom", font: { size: 11 } }; }
    var high = under ? 400 + (narrow() ? 30 : 22) * own : below.length > 1 && (narrow() || page.printed()) ? 600 + 20 * own : 0;
    page.draw(name, traces.concat(keys(figure, lines)), page.layout(cellsOf(lines), more), high);
  }

  function time(night) { return Date.parse(night.replace(" ", "T") + (night.length > 10 ? "Z" : "T00:00Z")); }

  function dates(places) {
    var nights = data.nights, dated = nights.every(function (night) { return night.length === 10; });
    var first = time(nights[places[0]]), last = time(nights[places[places.length - 1]]), days = Number(page.id("nights") && page.id("nights").value);
    var from = days ? Math.max(first, last - days * DAY) : first, room = Math.max(DAY / 2, 0.02 * (last - from));
    var shape = { type: "date", range: [from - room, last + room], tickformat: dated ? "%-d %b\n%Y" : "", tickangle: 0, nticks: narrow() ? 4 : 8 };
    if (dated && places.length <= 12) {
      var step = Math.ceil(places.length / (narrow() ? 4 : 12));
      shape.tickvals = places.filter(function (_, at) { return at % step === 0; }).map(function (at) { return nights[at]; });
    }
    return shape;
  }

  // Lines that have a panel of their own: not those that only mark points of another.
  function panelled(lines) { return lines.filter(function (line) { return line.levels; }); }

  // From the least to the most that is drawn, bands included, and never so narrow that noise fills it.
  function reach(lines, scale, zero) {
    var all = scale === "relative" || zero ? [0] : [];
    lines.forEach(function (line) {
      line.y.forEach(function (value) { if (value !== null) { all.push(scaled(line, value, scale)); } });
      (line.levels || []).forEach(function (one) { [-1, 1].forEach(function (side) { all.push(scaled(line, (one.y || 0) + side * (one.noise || 0), scale)); }); });
    });
    var low = Math.min.apply(null, all), high = Math.max.apply(null, all);
    var least = (scale === "relative" ? 100 : Math.max(Math.abs(low), Math.abs(high)) || 1) * LEAST_SPAN / 100;
    var room = Math.max(0, least - (high - low)) / 2 + 0.05 * (high - low);
    return [zero && low >= 0 ? 0 : low - room - (high - low) * 0.06, high + room];
  }

  // Bands, levels, changes, and at the foot the nights that failed. apart: between the words of changes; 0: without these.
  function dress(line, scale, panel, range, shape, apart) {
    var nights = data.nights, x = "x" + panel, y = "y" + panel, colour = colourOf(line), traces = [];
    (line.levels || []).forEach(function (one) {
      var basic = { xref: x, yref: y, x0: nights[one.begin || 0], x1: nights[one.end || 0], layer: "below" }, at = one.y || 0, noise = one.noise || 0;
      shape.shapes.push(Object.assign({ type: "rect", fillcolor: colour, opacity: 0.15, line: { width: 0 }, y0: scaled(line, at - noise, scale), y1: scaled(line, at + noise, scale) }, basic));
      if (one.drawn) { shape.shapes.push(Object.assign({ type: "line", line: { color: page.css("--ink"), width: 1 }, y0: scaled(line, at, scale), y1: scaled(line, at, scale) }, basic)); }
    });
    (line.marks || []).forEach(function (mark) {
      if (mark.x === undefined || mark.x < across(line)[0]) { return; }
      shape.shapes.push({ type: "line", xref: x, yref: y + " domain", x0: nights[mark.x], x1: nights[mark.x], y0: 0, y1: 1, line: { color: page.css(mark.colour), width: 1.5, dash: "dash" } });
      if (apart && !shape.annotations.some(function (one) { return Math.abs(time(one.x) - time(nights[mark.x])) < apart; })) {
        shape.annotations.push({ xref: x, yref: y + " domain", x: nights[mark.x], y: 1, yanchor: "bottom", showarrow: false, text: plain(mark.words), font: { color: page.css(mark.colour), size: 11 } });
      }
    });
    var failed = (data.trends[line.cells[0]] || {}).failed || [];
    if (failed.length) {
      traces.push({ x: failed.map(function (one) { return nights[one[0]]; }), y: failed.map(function () { return range[0]; }), xaxis: x, yaxis: y, type: "scatter", mode: "markers", name: "failed", showlegend: false, cliponaxis: false,
        meta: line.cells[0], marker: { symbol: "x-thin", size: 8, color: page.css("--bad"), line: { width: 1.5, color: page.css("--bad") } }, hoverinfo: "text", hoverlabel: { align: "left" },
        hovertext: failed.map(function (one) { return "<b>" + plain(nights[one[0]]) + "</b><br>failed: " + page.wrapped(one[1]); }) });
    }
    return traces;
  }

  // Each panel's place: pixels across and down, as shares of the plot.
  function places(count, duts, numbered, longest) {
    var width = Math.min(page.width(), 1344) - 100, fit = Math.max(1, Math.min(6, Math.floor(width / (width < 540 ? 120 : 165)), count));
    var columns = count === 1 ? 1 : duts >= 3 && duts <= fit ? duts : fit, rows = Math.ceil(count / columns);
    var letters = Math.floor(width / columns / 6.6), title = (longest > letters ? 2.6 : 1.4) * page.letters(), body = count === 1 ? 280 : Math.max(94, 7.2 * page.letters()), each = title + body + 20, height = rows * each, side = (numbered ? 46 : 14) / width;
    return { columns: columns, height: height, letters: letters, folded: longest > letters,
      x: function (at) { var column = at % columns; return [(column + (column ? side * columns : 0)) / columns, (column + 1) / columns]; },
      y: function (at) { var top = height - Math.floor(at / columns) * each; return [(top - title - body) / height, (top - title) / height]; } };
  }

  // A panel's name: where there is no room for it, its DUT has a line of its own.
  function heading(line, figure, now, grid) {
    var whole = label(line, figure, now), dut = plain(data.columns[data.cells[line.cells[0]].column].name), rest = whole.slice(dut.length).trim(), last = (line.marks || []).slice(-1)[0];
    var mark = last ? "<span style=\"color:" + page.css(last.colour) + "\">" + plain(last.words) + "</span> " : "", left = grid.letters - (last ? last.words.length + 1 : 0);
    return grid.folded ? cut(dut, grid.letters) + "<br>" + mark + (left > 3 ? cut(rest, left) : "") : mark + whole;
  }

  // Its entities stay whole.
  function cut(words, most) {
    var parts = words.match(/&[^;]+;|[^]/g) || [];
    return parts.length > most ? parts.slice(0, most - 1).join("") + "\u2026" : words;
  }

  // A small panel for each cell; two share one.
  function grid(figure, lines, now) {
    var all = panelled(lines), scale = scaleOf(figure, lines, now), zero = page.id("zero").checked && scale !== "relative", together = all.length <= TOGETHER;
    var shown = all.slice(0, page.printed() ? PRINTED_PANELS : narrow() ? NARROW_PANELS : PANELS), matched = scale === "relative", traces = [], shape = { shapes: [], annotations: [], showlegend: together && all.length > 1 };
    var nights = Array.from(new Set([].concat.apply([], shown.map(across)))).sort(function (a, b) { return a - b; });
    if (!shown.length) {
      page.draw(name, [], page.layout([], { xaxis: { visible: false }, yaxis: { visible: false }, annotations: [{ xref: "paper", yref: "paper", x: 0.5, y: 0.5, showarrow: false, text: "No cell that is chosen has this figure." }] }));
      return;
    }
    var at = dates(nights), wide = at.range[1] - at.range[0], longest = Math.max.apply(null, shown.map(function (line) { return label(line, figure, now).length + (line.marks ? 12 : 0); }));
    var room = places(together ? 1 : shown.length, new Set(shown.map(function (line) { return data.cells[line.cells[0]].column; })).size, !matched, longest), every = reach(shown, scale, zero);
    shown.forEach(function (line, number) {
      var place = together ? 0 : number, panel = panelNumber(place), words = label(line, figure, now), range = matched || together ? every : reach([line], scale, zero);
      traces = traces.concat(lines.filter(function (one) { return one.cells[0] === line.cells[0]; }).map(function (one) {
        return trace(together || one.dash === "none" ? one : Object.assign({}, one, { dash: "solid" }), figure, words, function (_, value) { return data.nights[value]; }, function (_, value) { return scaled(one, value, scale); }, { x: "x" + panel, y: "y" + panel }, { showlegend: one === line });
      }), dress(line, scale, panel, range, shape, together ? wide / 8 : 0));
      if (together && number) { return; }
      var last = together || number + room.columns >= shown.length, left = number % room.columns === 0;
      shape["xaxis" + panel] = page.axis("", Object.assign({}, at, { domain: room.x(place), anchor: "y" + panel, matches: together || number === shown.length - 1 ? undefined : "x" + panelNumber(shown.length - 1), showticklabels: last }, together ? {} : { nticks: 3, tickvals: at.tickvals && [at.tickvals[0], at.tickvals[at.tickvals.length - 1]], range: [at.range[0] - 0.12 * wide, at.range[1] + 0.12 * wide] }));
      shape["yaxis" + panel] = page.axis("", { domain: room.y(place), anchor: "x" + panel, matches: place && matched ? "y" : undefined, nticks: together ? 8 : 4, range: range, showticklabels: left || !matched, tickformat: matched ? "~g" : "", tickvals: matched || together ? undefined : [0.2, 0.8].map(function (share) { return Number((range[0] + share * (range[1] - range[0])).toPrecision(3)); }) });
      if (!together) { shape.annotations.push({ xref: "x" + panel + " domain", yref: "y" + panel + " domain", x: 0, y: 1, xanchor: "left", yanchor: "bottom", align: "left", showarrow: false, font: { size: 11 }, text: heading(line, figure, now, room) }); }
    });
    shape.annotations.push({ xref: "paper", yref: "paper", x: 0, y: 1, xanchor: "left", yanchor: "bottom", yshift: together ? 20 : 6, showarrow: false, align: "left",
      text: plain(figure.y.titles[scale]) + (all.length > shown.length ? ";<br>and " + (all.length - shown.length) + " more: choose a mode or DUT" : "") });
    Object.assign(shape, { margin: { l: 60, r: 14, t: 60, b: 44 }, hovermode: together ? "x" : "closest", hoverdistance: together ? 20 : 40, height: room.height + 104 });
    page.draw(name, traces, page.layout(cellsOf(shown), shape), shape.height);
  }

  // A head for each DUT, a row for each of its cells; where they stand, counted in rows from the top.
  function arranged(figure, lines, now) {
    var rows = [], heads = [], at = 0, last = null, by = {}, columns = lines.map(function (line) { return data.cells[line.cells[0]].column; });
    var own = new Set(lines.map(function (line) { return line.cells[0]; })).size === new Set(columns).size;
    lines.forEach(function (line) {
      var number = line.cells[0], cell = data.cells[number], dut = plain(data.columns[cell.column].name), words = page.label(cell, now, figure.follows === "duts");
      if (by[number] === undefined) {
        if (!own && cell.column !== last) { heads.push({ at: at + HEAD / ROW / 2, words: dut }); at += HEAD / ROW; last = cell.column; }
        by[number] = at + 0.5;
        rows.push({ at: at + 0.5, words: own ? words : words.slice(dut.length).trim() || dut });
        at += 1;
      }
    });
    return { rows: rows, heads: heads, length: at, of: function (line) { return by[line.cells[0]]; } };
  }

  // Panels side by side, as many as the page is wide; hollow marks are what the filled ones are compared with.
  function rows(figure, lines, now) {
    var found = arranged(figure, lines, now), every = [figure.x].concat(figure.below || []), made = [], more = { annotations: [], shapes: [], showlegend: false };
    var panels = every.map(function (one, panel) { return { axis: one, lines: lines.filter(function (line) { return (line.panel || 0) === panel; }) }; }).filter(function (one) { return one.lines.length; });
    var longest = Math.max.apply(null, found.rows.map(function (row) { return row.words.length; }).concat(10));
    var wide = page.width() / page.letters() - longest / 2, abreast = Math.max(1, Math.min(panels.length, Math.floor(wide / 19))), bands = Math.ceil(panels.length / abreast) || 1;
    var band = found.length * ROW + TOP + BOTTOM, height = bands * band;
    panels.forEach(function (panel, number) {
      var line = Math.floor(number / abreast), place = number % abreast, share = 1 / Math.min(abreast, panels.length), x = "x" + panelNumber(number), y = "y" + panelNumber(line);
      var all = [].concat.apply([], panel.lines.map(function (one) { return across(one).map(function (value, at) { return [value - ((one.apart || [])[at] || 0), value + ((one.apart || [])[at] || 0)]; }); }));
      all = [].concat.apply([], all);
      var low = Math.min.apply(null, all.concat(0)), high = panel.axis.span ? panel.axis.span[1] : Math.max.apply(null, all.concat(panel.axis.fit ? 1 : 0)), end = low + ROOM * (high - low);
      panel.lines.forEach(function (one) {
        var at = found.of(one), values = across(one);
        made.push(Object.assign(trace(Object.assign({}, one, { y: values.map(function () { return at; }), apart: undefined, width: 3 }), figure, page.label(data.cells[one.cells[0]], now), function (_, value) { return value; }, function (_, value) { return value; }, { x: x, y: y }),
          { showlegend: false, error_x: { type: "data", array: one.apart || [], visible: Boolean(one.apart), color: page.css("--ink"), thickness: 1.4, width: 4 } }));
      });
      made.push({ type: "scatter", mode: "text", x: panel.lines.map(function () { return end; }), y: panel.lines.map(found.of), xaxis: x, yaxis: y, text: panel.lines.map(function (one) { return plain(one.words[0]); }),
        textposition: "middle left", textfont: { size: 0.92 * page.letters() }, hoverinfo: "skip", showlegend: false, cliponaxis: false });
      more["xaxis" + x.slice(1)] = page.axis("", { domain: [place * share + (place ? 0.015 : 0), (place + 1) * share - (place < abreast - 1 ? 0.015 : 0)], anchor: y, range: [low - 0.03 * (high - low), end], fixedrange: true,
        nticks: 5, tickangle: 0, zeroline: low < 0, tickvals: panel.axis.span ? [0, 50, 100] : undefined });
      if (!place) {
        more["yaxis" + y.slice(1)] = page.axis("", { domain: [1 - (line * band + TOP + found.length * ROW) / height, 1 - (line * band + TOP) / height], range: [found.length, 0], fixedrange: true, showgrid: false, zeroline: false, anchor: x,
          tickvals: found.rows.map(function (row) { return row.at; }), ticktext: found.rows.map(function (row) { return cut(row.words, narrow() ? 22 : 60); }) });
        found.heads.forEach(function (head) { more.annotations.push({ text: "<b>" + cut(head.words, narrow() ? 20 : 80) + "</b>", x: 0, xref: x + " domain", xanchor: "left", y: head.at, yref: y, showarrow: false }); });
      }
      more.annotations.push({ text: plain(panel.axis.title), x: 0, xref: x + " domain", xanchor: "left", y: 1, yref: y + " domain", yanchor: "bottom", yshift: 4, showarrow: false });
    });
    more.margin = { l: 10, r: 14, t: 0, b: 0 };
    more.height = Math.max(height, TOP + BOTTOM + 6) * page.letters(); // Plotly keeps one unless it is given another
    page.draw(name, made, page.layout(cellsOf(lines), more), more.height);
  }

  return function (now) {
    var figure = data.figures[name][select ? select.selectedIndex : 0], lines = visible(figure, now);
    drawn = lines;
    (figure.form === "grid" ? grid : figure.form === "rows" ? rows : stack)(figure, lines, now);
    if (figure.dated) { page.documents(figure, lines, now, text); }
  };
}
