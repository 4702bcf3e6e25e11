"use strict";
// Every cell's figures over the nights: lines in one plot while they can be told apart, else a small panel for each.
function trendsPlot(page) {
  var TOGETHER = 6, PANELS = 40, NARROW_PANELS = 16, PRINTED_PANELS = 15, TOLD = 12, CHANGES_TOLD = 3; // lines in one plot, panels, texts in a tooltip
  var DAY = 864e5, PLAIN_TICKS = 12, MANY_NIGHTS = 30, DENSE = 90, SMOOTHED = 15; // from DENSE nights on, a line is the median of SMOOTHED runs
  var BAND = 2; // standard deviations of a night, to each side of a level: about 95 % of the nights
  var LEAST_SPAN = 4; // percent of an axis, so that noise does not fill it
  var data = page.data, nights = data.nights, plain = page.plain;
  var dated = nights.every(function (night) { return night.length === 10; });
  var touched = window.matchMedia("(pointer: coarse)");
  var documents = trendDocuments(page);

  function time(night) { return Date.parse(night.replace(" ", "T") + (night.length > 10 ? "Z" : "T00:00Z")); }

  // One cell's figures: its runs and the nights that failed, in order; a failed night breaks the line.
  function read(trend, metric) {
    var values = trend.values[metric.name], bounds = metric.bounded ? trend.bound : [];
    if (!values) { return null; }
    var points = trend.x.map(function (x, run) {
      return { x: x, run: run, value: values.of[run] === null ? null : values.level + values.of[run] * values.step, bound: false };
    });
    bounds.forEach(function (run) { points[run].bound = true; });
    var gaps = trend.failed.map(function (one) { return { x: one[0], run: -1, value: null }; });
    points = points.concat(gaps).sort(function (a, b) { return a.x - b.x || a.run - b.run; });
    var known = points.filter(function (one) { return one.value !== null; });
    return known.length ? { trend: trend, cell: data.cells[trend.cell], points: points, known: known, level: values.level, noise: values.noise,
      changes: trend.changes.filter(function (one) { return one.metric === metric.name; }).sort(function (a, b) { return a.x - b.x; }) } : null;
  }

  // As the table has them: modes below each other, DUTs side by side.
  function ordered(lines) {
    var modes = data.cells.map(function (cell) { return cell.mode; });
    function key(line) { return [line.cell.bidir ? 1 : 0, modes.indexOf(line.cell.mode), line.cell.column]; }
    return lines.slice().sort(function (a, b) {
      var one = key(a), other = key(b);
      return one[0] - other[0] || one[1] - other[1] || one[2] - other[2];
    });
  }

  // A DUT's own look, and another dash and marker for each further line of the same colour: no two lines are alike.
  function dress(lines, now) {
    var taken = {}, palette = page.palette();
    lines.forEach(function (line) {
      var look = Object.assign({}, page.look(line.cell, now)), dash = palette.dashes.indexOf(look.dash), marker = palette.markers.indexOf(look.marker);
      while (taken[[look.colour, look.dash]] || taken[[look.colour, look.marker, "marker"]]) {
        look.dash = palette.dashes[++dash % palette.dashes.length];
        look.marker = palette.markers[++marker % palette.markers.length];
      }
      taken[[look.colour, look.dash]] = taken[[look.colour, look.marker, "marker"]] = true;
      line.look = look;
    });
  }

  // How values are drawn: in percent off each cell's usual level, or in the figure's own unit.
  function scaleOf(metric, now, lines) {
    var possible = lines.length > 1 && metric.unit !== "%" && lines.every(function (line) { return line.level; });
    var relative = possible && page.id("relative").checked, share = !relative && metric.unit === "Mpps" && now.unit === "share" &&
      lines.every(function (line) { return line.trend.line; });
    page.id("relative").disabled = !possible;
    page.id("zero").disabled = relative;
    return { relative: relative, zero: !relative && page.id("zero").checked, title: plain(metric.name) + (relative ? ", % off usual level" : share ? ", % of line rate" : ", " + plain(metric.unit)),
      of: function (line, value) {
        return relative ? 100 * (value / line.level - 1) : share ? 100 * value / line.trend.line : value * metric.scale;
      } };
  }

  function signed(percent) {
    var text = Math.abs(percent).toFixed(1);
    return (text === "0.0" ? "" : percent < 0 ? "\u2212" : "+") + text + " %";
  }

  function told(line, point, metric, name) {
    var text = "<b>" + name + "</b>: " + (point.bound ? "at least " : "") + page.digits(point.value * metric.scale) + " " + plain(metric.unit);
    return text + (metric.unit !== "%" && line.level ? ", " + signed(100 * (point.value / line.level - 1)) : "");
  }

  function changeTold(line, x) {
    return line.changes.filter(function (one) { return one.x === x; }).map(function (one) {
      return "<span style=\"color:" + colourOf(one) + "\">" + signOf(one) + "</span> " + page.wrapped(one.text);
    });
  }

  // All that is known of each night, as one text: figures in their order, changes, failures.
  function heard(lines, metric, scale, now, failed, chosen) {
    var nightly = chosen.map(function () { return []; }), changes = chosen.map(function () { return []; }), at = {};
    chosen.forEach(function (x, place) { at[x] = place; });
    lines.forEach(function (line) {
      line.known.forEach(function (point) {
        var mark = "<span style=\"color:" + line.look.colour + "\">\u25cf</span> ";
        nightly[at[point.x]].push({ y: scale.of(line, point.value), text: mark + told(line, point, metric, page.label(line.cell, now)) });
        changes[at[point.x]] = changes[at[point.x]].concat(changeTold(line, point.x));
      });
    });
    return { x: chosen.map(function (x) { return nights[x]; }), type: "scatter", mode: "lines", name: "told", showlegend: false, line: { width: 0 },
      y: nightly.map(function (some) { return some.length ? Math.max.apply(null, some.map(function (one) { return one.y; })) : scale.of(lines[0], lines[0].level); }),
      hoverinfo: "text", hovertext: nightly.map(function (some, place) {
        var most = some.sort(function (a, b) { return b.y - a.y; }).map(function (one) { return one.text; });
        var lost = failed && failed.x.indexOf(nights[chosen[place]]);
        return ["<b>" + plain(nights[chosen[place]]) + "</b>"].concat(most, bounded(changes[place], CHANGES_TOLD), lost >= 0 && failed ? [failed.hovertext[lost]] : []).join("<br>");
      }) };
  }

  function bounded(texts, most) {
    return texts.length > most ? texts.slice(0, most).concat("and " + (texts.length - most) + " more") : texts;
  }

  // At each run the median of those around it: a step stays a step.
  function smoothed(line) {
    var half = (SMOOTHED - 1) / 2, place = 0;
    return line.points.map(function (one) {
      if (one.value === null) { return null; }
      var around = line.known.slice(Math.max(0, place - half), place + half + 1).map(function (known) { return known.value; });
      place++;
      around.sort(function (a, b) { return a - b; });
      return (around[Math.floor((around.length - 1) / 2)] + around[Math.ceil((around.length - 1) / 2)]) / 2;
    });
  }

  // Many nights of a line: its runs as small points, and a line of their median. The points have an axis over the other,
  // so that the overview below, which draws all of its axis again, has the lines only.
  function dense(one, line, scale) {
    var name = one.name, median = smoothed(line).map(function (value) { return value === null ? null : scale.of(line, value); });
    return [Object.assign({}, one, { xaxis: "x3", mode: "markers", showlegend: false, legendgroup: name, marker: Object.assign({}, one.marker, { size: page.width() < 640 ? 1.5 : 2.5 }) }),
      Object.assign({}, one, { mode: "lines", y: median, connectgaps: true, legendgroup: name, line: Object.assign({}, one.line, { width: 2.5 }) })];
  }

  function trace(line, metric, scale, now, panel, small) {
    var name = page.label(line.cell, now);
    return { x: line.points.map(function (one) { return nights[one.x]; }), xaxis: "x" + panel, yaxis: "y" + panel, type: "scatter", mode: "lines+markers",
      y: line.points.map(function (one) { return one.value === null ? null : scale.of(line, one.value); }), name: name, connectgaps: false,
      showlegend: !small, line: { color: line.look.colour, width: 1.2, dash: small ? "solid" : line.look.dash }, meta: line.trend.cell,
      marker: { color: line.look.colour, size: small ? 3 : 6.5,
        symbol: line.points.some(function (one) { return one.bound; }) ? line.points.map(function (one) { return one.bound ? "triangle-up-open" : line.look.marker; }) : line.look.marker },
      hoverinfo: small ? "text" : "skip", hovertext: small ? line.points.map(function (one) {
        return one.value === null ? "" : ["<b>" + plain(nights[one.x]) + "</b>", told(line, one, metric, name)].concat(changeTold(line, one.x)).join("<br>");
      }) : [] };
  }

  // The stretches of one level: before the first change and after each, or all nights.
  function levels(line) {
    var first = line.known[0].x, last = line.known[line.known.length - 1].x;
    var changes = line.changes.filter(function (one) { return one.before !== null && one.after !== null; });
    if (!changes.length) { return [[first, last, line.level]]; }
    return [[first, Math.max(first, changes[0].x), changes[0].before]].concat(changes.map(function (one, at) {
      return [Math.max(first, one.x), at + 1 < changes.length ? Math.max(first, changes[at + 1].x) : last, one.after];
    }));
  }

  // many: of so many lines in one plot, whose bands lie over each other.
  function shapesOf(line, scale, panel, many) {
    var found = [], x = "x" + panel, y = "y" + panel;
    levels(line).forEach(function (one) {
      var noise = BAND * (line.noise || 0), basic = { xref: x, yref: y, x0: nights[one[0]], x1: nights[one[1]] };
      found.push(Object.assign({ type: "rect", layer: "below", fillcolor: line.look.colour, opacity: many > 3 ? 0.05 : 0.13, line: { width: 0 },
        y0: scale.of(line, one[2] - noise), y1: scale.of(line, one[2] + noise) }, basic));
      if (line.changes.length) {
        found.push(Object.assign({ type: "line", line: { color: line.look.colour, width: 3 }, opacity: 0.95,
          y0: scale.of(line, one[2]), y1: scale.of(line, one[2]) }, basic));
      }
    });
    return found;
  }

  function colourOf(change) { return page.css(change.bad ? "--bad" : "--good"); }

  function signOf(change) { return change.bad ? "\u25bc" : "\u25b2"; }

  // One line for all changes of a night and of one kind; a sign that would stand on another's is left out.
  function changeMarks(lines, panel, across) {
    var shapes = [], signs = [], seen = {};
    lines.forEach(function (line) { line.changes.forEach(function (change) {
      var key = change.x + " " + change.bad;
      if (seen[key] || change.x < line.known[0].x) { return; }
      seen[key] = true;
      shapes.push({ type: "line", xref: "x" + panel, yref: "y" + panel + " domain", x0: nights[change.x], x1: nights[change.x], y0: 0, y1: 1,
        line: { color: colourOf(change), width: 1.5, dash: "dash" } });
      var near = signs.some(function (sign) { return Math.abs(time(sign.x) - time(nights[change.x])) < across; });
      if (!near) {
        signs.push({ xref: "x" + panel, yref: "y" + panel + " domain", x: nights[change.x], y: 1, yanchor: "bottom", showarrow: false,
          text: signOf(change), font: { color: colourOf(change) } });
      }
    }); });
    return { shapes: shapes, signs: signs };
  }

  // From the least to the most that is drawn, bands included, and never so narrow that noise fills it.
  function reach(lines, scale) {
    var all = scale.relative || scale.zero ? [0] : [];
    lines.forEach(function (line) {
      line.known.forEach(function (one) { all.push(scale.of(line, one.value)); });
      levels(line).forEach(function (one) {
        [-1, 1].forEach(function (side) { all.push(scale.of(line, one[2] + side * BAND * (line.noise || 0))); });
      });
    });
    var low = Math.min.apply(null, all), high = Math.max.apply(null, all);
    var least = (scale.relative ? 100 : Math.max(Math.abs(low), Math.abs(high)) || 1) * LEAST_SPAN / 100;
    var room = Math.max(0, least - (high - low)) / 2 + 0.05 * (high - low);
    return [scale.zero && low >= 0 ? 0 : low - room, high + room];
  }

  // The axis of the nights. chosen: those that are drawn.
  function across(chosen) {
    var first = time(nights[chosen[0]]), last = time(nights[chosen[chosen.length - 1]]);
    var days = Number(page.id("nights") && page.id("nights").value), from = days ? Math.max(first, last - days * DAY) : first;
    var room = Math.max(DAY / 2, 0.02 * (last - from));
    var shape = { type: "date", range: [from - room, last + room], hoverformat: dated ? "%Y-%m-%d" : "%Y-%m-%d %H:%M", tickformat: dated ? "%-d %b\n%Y" : "", tickangle: 0, nticks: page.width() < 640 ? 4 : 8 };
    if (dated && chosen.length <= PLAIN_TICKS) {
      var step = Math.ceil(chosen.length / (page.width() < 640 ? 4 : PLAIN_TICKS));
      shape.tickvals = chosen.filter(function (_, at) { return at % step === 0; }).map(function (at) { return nights[at]; });
    }
    return { axis: shape, full: [first - room, last + room], span: last + room - (from - room), chosen: chosen,
      dense: chosen.filter(function (at) { return time(nights[at]) >= from; }).length > DENSE };
  }

  // Below the plot: how many cells failed in a night; who points at one is told all of them.
  function strip(trends, now, span, panel) {
    var by = {};
    trends.forEach(function (trend) {
      trend.failed.forEach(function (one) {
        (by[one[0]] = by[one[0]] || []).push("<b>" + page.label(data.cells[trend.cell], now) + "</b> failed: " + page.wrapped(one[1]));
      });
    });
    var at = Object.keys(by).map(Number).sort(function (a, b) { return a - b; });
    if (!at.length) { return null; }
    return { x: at.map(function (one) { return nights[one]; }), y: at.map(function (one) { return by[one].length; }), type: "bar", name: "failed", showlegend: false,
      xaxis: "x" + (panel === "2" ? "" : panel), yaxis: "y" + panel, width: Math.max(0.8 * DAY * (span > 60 * DAY ? 1 : 0), Math.min(0.8 * DAY, span / 60)),
      marker: { color: page.css("--bad") }, hoverinfo: "text", hovertext: at.map(function (one) {
        return bounded(by[one], TOLD).join("<br>");
      }) };
  }

  function counts(bars, domain) {
    var most = Math.max.apply(null, bars.y);
    return page.axis("", { domain: domain, range: [0, most * 1.1], tickvals: [0, most], fixedrange: true });
  }

  // Level, in the gap above the bars: beside the figure's own title there is no room at every height.
  function countsTitle(panel) {
    return { xref: "paper", yref: "y" + panel + " domain", x: 0, y: 1, xanchor: "left", yanchor: "bottom", showarrow: false, text: "cells that failed" };
  }

  function together(lines, metric, scale, now, failed, x) {
    var shapes = [], marks = changeMarks(lines, "", x.span * 14 / page.width()), bottom = failed ? 0.22 : 0;
    var slider = lines[0].points.length > MANY_NIGHTS && !touched.matches && !page.printed();
    dress(lines, now);
    lines.forEach(function (line) { shapes = shapes.concat(shapesOf(line, scale, "", lines.length)); });
    var shape = { shapes: shapes.concat(marks.shapes), annotations: marks.signs,
      xaxis: page.axis("", Object.assign({ anchor: failed ? "y2" : "y", showspikes: true, spikemode: "across", spikethickness: 1, spikedash: "dot", spikecolor: page.css("--soft"),
        rangeslider: { visible: slider, range: x.full, thickness: 0.09, bordercolor: page.css("--line"), borderwidth: 1 } }, x.axis)),
      yaxis: page.axis(scale.title.replace(", % off", ",<br>% off"), { domain: [bottom, 1], range: reach(lines, scale), fixedrange: false, tickformat: scale.relative ? "~g" : "" }) };
    if (failed) { shape.yaxis2 = counts(failed, [0, 0.12]); shape.annotations.push(countsTitle("2")); }
    if (x.dense) { shape.xaxis3 = { type: "date", overlaying: "x", matches: "x", anchor: "y", range: x.axis.range, visible: false }; }
    page.id("plot-trends").style.height = "";
    var traces = lines.map(function (line) {
      var one = trace(line, metric, scale, now, "", false);
      return x.dense ? dense(one, line, scale) : [one];
    });
    page.draw("trends", [].concat.apply([], traces).concat(failed ? Object.assign({}, failed, { hoverinfo: "skip" }) : [], heard(lines, metric, scale, now, failed, x.chosen)), finish(lines, shape));
  }

  // Ranges are always told, so that a zoom lasts as long as its axis would be the same. Plotly keeps a height unless it is told another.
  function finish(lines, shape, height) {
    return page.layout(lines.map(function (line) { return line.cell; }), Object.assign({ hovermode: "x", hoversubplots: "axis", hoverdistance: -1,
      height: height || page.id("plot-trends").clientHeight }, shape));
  }

  // Each panel's place: pixels across and down, as shares of the plot.
  function grid(count, duts, failed, numbered, longest) {
    var width = Math.min(page.width(), 1344) - 100, fit = Math.max(1, Math.min(6, Math.floor(width / (width < 540 ? 120 : 165)), count));
    var columns = duts >= 3 && duts <= fit ? duts : fit, rows = Math.ceil(count / columns), below = failed ? 105 : 0;
    var letters = Math.floor(width / columns / 6.6), title = longest > letters ? 34 : 18, each = title + 114;
    var height = rows * each + below, side = (numbered ? 46 : 14) / width;
    return { columns: columns, height: height, letters: letters, folded: longest > letters, strip: [0, 45 / height],
      x: function (at) { var column = at % columns; return [(column + (column ? side * columns : 0)) / columns, (column + 1) / columns]; },
      y: function (at) { var top = height - Math.floor(at / columns) * each; return [(top - title - 94) / height, (top - title) / height]; } };
  }

  function apart(lines, metric, scale, now, trends, x) {
    var most = page.printed() ? PRINTED_PANELS : page.width() < 640 ? NARROW_PANELS : PANELS, shown = ordered(lines).slice(0, most), traces = [], shape = { shapes: [], annotations: [], showlegend: false };
    var failed = strip(trends, now, x.span, String(shown.length + 1));
    var places = grid(shown.length, new Set(shown.map(function (line) { return line.cell.column; })).size, failed, !scale.relative,
      Math.max.apply(null, shown.map(function (line) { return page.label(line.cell, now).length + 2; }))), range = reach(shown, scale);
    shown.forEach(function (line, at) {
      var panel = at ? String(at + 1) : "", last = at + places.columns >= shown.length, left = at % places.columns === 0;
      dress([line], now);
      var marks = changeMarks([line], panel, 0);
      traces.push(trace(line, metric, scale, now, panel, true));
      shape.shapes = shape.shapes.concat(shapesOf(line, scale, panel, 1), marks.shapes);
      shape.annotations.push({ xref: "x" + panel + " domain", yref: "y" + panel + " domain", x: 0, y: 1, xanchor: "left", yanchor: "bottom", align: "left", showarrow: false,
        font: { size: 11 }, text: (marks.signs.length ? "<span style=\"color:" + colourOf(line.changes[line.changes.length - 1]) + "\">" + signOf(line.changes[line.changes.length - 1]) + "</span> " : "") + heading(line, now, places) });
      shape["xaxis" + panel] = page.axis("", Object.assign({}, x.axis, { domain: places.x(at), anchor: "y" + panel, matches: at ? "x" : undefined,
        showticklabels: last, nticks: 3, tickvals: x.axis.tickvals && [x.axis.tickvals[0], x.axis.tickvals[x.axis.tickvals.length - 1]] }));
      shape["yaxis" + panel] = page.axis("", { domain: places.y(at), anchor: "x" + panel, matches: at && scale.relative ? "y" : undefined, nticks: 4,
        range: scale.relative ? range : reach([line], scale), showticklabels: left || !scale.relative, tickformat: scale.relative ? "~g" : "" });
    });
    if (failed) {
      var own = String(shown.length + 1);
      traces.push(failed);
      shape["xaxis" + own] = page.axis("", Object.assign({}, x.axis, { anchor: "y" + own, matches: "x" }));
      shape["yaxis" + own] = Object.assign(counts(failed, places.strip), { anchor: "x" + own });
      shape.annotations.push(countsTitle(own));
    }
    var more = lines.length - shown.length;
    shape.annotations.push({ xref: "paper", yref: "paper", x: 0, y: 1, xanchor: "left", yanchor: "bottom", yshift: 6, showarrow: false,
      align: "left", text: scale.title + (more > 0 ? ";<br>and " + more + " more: choose a mode or DUT" : "") });
    shape.margin = { l: 60, r: 14, t: 60, b: 44 };
    page.draw("trends", traces, finish(shown, shape, places.height + 104), places.height + 104);
  }

  // A panel's name: where there is no room for it, its DUT has a line of its own.
  function heading(line, now, places) {
    var name = page.label(line.cell, now), dut = plain(data.columns[line.cell.column].name), rest = name.slice(dut.length).trim();
    return places.folded ? cut(dut, places.letters) + "<br>" + cut(rest, places.letters) : name;
  }

  // Its entities stay whole.
  function cut(name, most) {
    var parts = name.match(/&[^;]+;|[^]/g) || [];
    return parts.length > most ? parts.slice(0, most - 1).join("") + "\u2026" : name;
  }

  return function (now) {
    var metric = data.metrics.filter(function (one) { return one.name === page.id("metric").value; })[0];
    if (!metric) { return; }
    var trends = data.trends.filter(function (trend) { return page.chosen(data.cells[trend.cell], now); });
    var lines = trends.map(function (trend) { return read(trend, metric); }).filter(Boolean), places = new Set();
    lines.forEach(function (line) { line.points.forEach(function (one) { places.add(one.x); }); });
    var chosen = Array.from(places).sort(function (a, b) { return a - b; }), scale = scaleOf(metric, now, lines);
    if (!lines.length) {
      page.draw("trends", [], page.layout([], { xaxis: { visible: false }, yaxis: { visible: false }, annotations: [{ xref: "paper", yref: "paper", x: 0.5, y: 0.5,
        showarrow: false, text: "No cell that is chosen has this figure." }] }));
    } else if (lines.length > TOGETHER) {
      apart(lines, metric, scale, now, trends, across(chosen));
    } else {
      var x = across(chosen);
      together(lines, metric, scale, now, strip(trends, now, x.span, "2"), x);
    }
    documents(trends, metric, now, read);
  };
}
