// A small panel for each cell, over the nights; two cells share one.
function gridForm(page, of, name) {
  var DAY = 864e5, PANELS = 40, NARROW_PANELS = 16, PRINTED_PANELS = 15, TOGETHER = 2;
  var LEAST_SPAN = 4; // percent of an axis, so that noise does not fill it
  var LETTER = 6.6; // pixels of a letter of a panel's name
  var data = page.data, plain = page.plain;

  function time(night) { return Date.parse(night.replace(" ", "T") + (night.length > 10 ? "Z" : "T00:00Z")); }

  // The axis of these nights, as far as the reader wants to see back.
  function dates(places) {
    var nights = data.nights, dated = nights.every(function (night) { return night.length === 10; });
    var first = time(nights[places[0]]), last = time(nights[places[places.length - 1]]), days = Number(page.id("nights") && page.id("nights").value);
    var from = days ? Math.max(first, last - days * DAY) : first, room = Math.max(DAY / 2, 0.02 * (last - from));
    var shape = { type: "date", range: [from - room, last + room], tickformat: dated ? "%-d %b\n%Y" : "", tickangle: 0, nticks: of.narrow() ? 4 : 8 };
    if (dated && places.length <= 12) {
      var apart = (last - from) / (of.narrow() ? 4 : 12), free = from; // from where on there is room for a date
      shape.tickvals = places.map(function (at) { return nights[at]; }).filter(function (night) {
        return time(night) >= free && (free = time(night) + apart);
      });
    }
    return shape;
  }

  // Lines that have a panel of their own: not those that only mark points of another.
  function panelled(lines) { return lines.filter(function (line) { return line.levels; }); }

  // What the reader wants, as far as the lines have it; what cannot be chosen now is disabled.
  function scaleOf(figure, lines, now) {
    var relative = page.id("relative"), able = panelled(lines).length > 1 && lines.every(function (line) { return line.scales.relative; });
    relative.disabled = !able;
    page.id("zero").disabled = able && relative.checked;
    return of.scaleOf(able && relative.checked ? "relative" : now.unit, figure.y.titles, lines);
  }

  // From the least to the most that is drawn, bands included, and never so narrow that noise fills it.
  function reach(lines, scale, zero) {
    var all = scale === "relative" || zero ? [0] : [];
    lines.forEach(function (line) {
      line.y.forEach(function (value) { if (value !== null) { all.push(of.scaled(line, value, scale)); } });
      (line.levels || []).forEach(function (one) {
        [-1, 1].forEach(function (side) { all.push(of.scaled(line, (one.y || 0) + side * (one.noise || 0), scale)); });
      });
    });
    var low = Math.min.apply(null, all), high = Math.max.apply(null, all);
    var least = (scale === "relative" ? 100 : Math.max(Math.abs(low), Math.abs(high)) || 1) * LEAST_SPAN / 100;
    var room = Math.max(0, least - (high - low)) / 2 + 0.05 * (high - low);
    return [zero && low >= 0 ? 0 : low - room - (high - low) * 0.06, high + room];
  }

  // Bands and levels.
  function levels(line, scale, axes, colour) {
    return (line.levels || []).flatMap(function (one) {
      var basic = { xref: axes.x, yref: axes.y, x0: data.nights[one.begin || 0], x1: data.nights[one.end || 0], layer: "below" };
      var at = one.y || 0, noise = one.noise || 0, middle = of.scaled(line, at, scale);
      var band = Object.assign({ type: "rect", fillcolor: colour, opacity: 0.15, line: { width: 0 }, y0: of.scaled(line, at - noise, scale), y1: of.scaled(line, at + noise, scale) }, basic);
      return one.drawn ? [band, Object.assign({ type: "line", line: { color: page.css("--ink"), width: 1 }, y0: middle, y1: middle }, basic)] : [band];
    });
  }

  // Changes; in one panel with their words, and of several cells with the cell's.
  function changes(view, line, axes, shape, cell) {
    var several = view.shown.length > 1, apart = view.together ? view.wide / (several ? 4 : 8) : 0;
    (line.marks || []).forEach(function (mark) {
      if (mark.x === undefined || mark.x < of.across(line)[0]) { return; }
      var night = data.nights[mark.x], colour = page.css(mark.colour), up = { xref: axes.x, yref: axes.y + " domain" };
      shape.shapes.push(Object.assign({ type: "line", x0: night, x1: night, y0: 0, y1: 1, line: { color: colour, width: 1.5, dash: "dash" } }, up));
      if (apart && !shape.annotations.some(function (one) { return Math.abs(time(one.x) - time(night)) < apart; })) {
        shape.annotations.push(Object.assign({ x: night, y: 1, yanchor: "bottom", showarrow: false, text: plain(mark.words) + (several ? " " + cell : ""), font: { color: colour, size: 11 },
          xanchor: !several ? "center" : 2 * time(night) > view.dates.range[0] + view.dates.range[1] ? "right" : "left" }, up));
      }
    });
  }

  // Nights that failed, at the foot.
  function failures(line, axes, foot) {
    var failed = (data.trends[line.cells[0]] || {}).failed || [], bad = page.css("--bad");
    return !failed.length ? [] : [{
      x: failed.map(function (one) { return data.nights[one[0]]; }), y: failed.map(function () { return foot; }), xaxis: axes.x, yaxis: axes.y,
      type: "scatter", mode: "markers", name: "failed", showlegend: false, cliponaxis: false, meta: line.cells[0],
      marker: { symbol: "x-thin", size: 8, color: bad, line: { width: 1.5, color: bad } }, hoverinfo: "text", hoverlabel: { align: "left" },
      hovertext: failed.map(function (one) { return "<b>" + plain(data.nights[one[0]]) + "</b><br>failed: " + page.wrapped(one[1]); })
    }];
  }

  // Each panel's place: pixels across and down, as shares of the plot.
  function places(count, duts, numbered, longest) {
    var width = Math.min(page.width(), 1344) - 100, fit = Math.max(1, Math.min(6, Math.floor(width / (width < 540 ? 120 : 165)), count));
    var columns = count === 1 ? 1 : duts >= 3 && duts <= fit ? duts : fit, rows = Math.ceil(count / columns);
    var letters = Math.floor(width / columns / LETTER), title = (longest > letters ? 2.6 : 1.4) * page.letters();
    var body = count === 1 ? 280 : Math.max(94, 7.2 * page.letters()), each = title + body + 20, height = rows * each, side = (numbered ? 46 : 14) / width;
    function x(at) {
      var column = at % columns;
      return [(column + (column ? side * columns : 0)) / columns, (column + 1) / columns];
    }
    function y(at) {
      var top = height - Math.floor(at / columns) * each;
      return [(top - title - body) / height, (top - title) / height];
    }
    return { columns: columns, height: height, letters: letters, folded: longest > letters, x: x, y: y };
  }

  // A panel's name: where there is no room for it, its DUT has a line of its own.
  function heading(line, figure, now, room) {
    var whole = of.label(line, figure, now), dut = plain(data.columns[of.cell(line).column].name), rest = whole.slice(dut.length).trim(), last = (line.marks || []).slice(-1)[0];
    var mark = last ? "<span style=\"color:" + page.css(last.colour) + "\">" + plain(last.words) + "</span> " : "", left = room.letters - (last ? last.words.length + 1 : 0);
    return room.folded ? of.cut(dut, room.letters) + "<br>" + mark + (left > 3 ? of.cut(rest, left) : "") : mark + whole;
  }

  // A cell's line, and that which marks points of it.
  function traces(view, line, axes, words) {
    return view.lines.filter(function (one) { return one.cells[0] === line.cells[0]; }).map(function (one) {
      function along(_, value) { return data.nights[value]; }
      function up(_, value) { return of.scaled(one, value, view.scale); }
      var drawn = view.together || one.dash === "none" ? one : Object.assign({}, one, { dash: "solid" });
      return of.trace(drawn, view.figure, words, along, up, axes, { showlegend: one === line });
    });
  }

  function acrossAxis(view, number, place) {
    var at = view.dates, ends = at.tickvals && [at.tickvals[0], at.tickvals[at.tickvals.length - 1]], foot = view.shown.length - 1, wide = view.wide;
    var lowest = view.together || number + view.room.columns > foot;
    return page.axis("", Object.assign({}, at, { domain: view.room.x(place), anchor: "y" + of.panelNumber(place), automargin: false,
      matches: view.together || number === foot ? undefined : "x" + of.panelNumber(foot), showticklabels: lowest
    }, view.together ? {} : { nticks: 3, tickvals: ends, range: [at.range[0] - 0.12 * wide, at.range[1] + 0.12 * wide] }));
  }

  function upAxis(view, number, place, range) {
    var first = view.together || number % view.room.columns === 0, span = range[1] - range[0];
    var two = [0.2, 0.8].map(function (share) { return Number((range[0] + share * span).toPrecision(3)); });
    return page.axis("", { domain: view.room.y(place), anchor: "x" + of.panelNumber(place), matches: place && view.matched ? "y" : undefined, automargin: false,
      nticks: view.together ? 8 : 4, range: range, showticklabels: first || !view.matched, tickformat: view.matched ? "~g" : "", tickvals: view.matched || view.together ? undefined : two });
  }

  // What is drawn, and how: the cells that have room, and whether they share a panel or the scale of the first.
  function viewed(figure, lines, now) {
    var all = panelled(lines), scale = scaleOf(figure, lines, now), together = all.length <= TOGETHER, matched = scale === "relative";
    var shown = all.slice(0, page.printed() ? PRINTED_PANELS : of.narrow() ? NARROW_PANELS : PANELS), zero = page.id("zero").checked && !matched;
    if (!shown.length) { return null; }
    var at = dates(Array.from(new Set(shown.flatMap(of.across))).sort(function (a, b) { return a - b; })), every = reach(shown, scale, zero);
    var longest = Math.max.apply(null, shown.map(function (line) { return of.label(line, figure, now).length + (line.marks ? 12 : 0); }));
    var duts = new Set(shown.map(function (line) { return of.cell(line).column; })).size;
    return { figure: figure, lines: lines, now: now, shown: shown, left: all.length - shown.length, scale: scale, together: together, matched: matched, dates: at,
      wide: at.range[1] - at.range[0], room: places(together ? 1 : shown.length, duts, !matched, longest),
      range: function (line) { return matched || together ? every : reach([line], scale, zero); } };
  }

  // Adds one cell: its lines, what stands around them, its axes and its name.
  function panel(view, line, number, shape) {
    var place = view.together ? 0 : number, axes = { x: "x" + of.panelNumber(place), y: "y" + of.panelNumber(place) }, words = of.label(line, view.figure, view.now), range = view.range(line);
    var made = traces(view, line, axes, words).concat(failures(line, axes, range[0]));
    shape.shapes = shape.shapes.concat(levels(line, view.scale, axes, of.colourOf(line)));
    changes(view, line, axes, shape, words);
    if (view.together && number) { return made; }
    shape["xaxis" + of.panelNumber(place)] = acrossAxis(view, number, place);
    shape["yaxis" + of.panelNumber(place)] = upAxis(view, number, place, range);
    if (!view.together) {
      shape.annotations.push({ xref: axes.x + " domain", yref: axes.y + " domain", x: 0, y: 1, xanchor: "left", yanchor: "bottom", align: "left", showarrow: false,
        font: { size: 11 }, text: heading(line, view.figure, view.now, view.room) });
    }
    return made;
  }

  return function (figure, lines, now) {
    var view = viewed(figure, lines, now), shape = { shapes: [], annotations: [] };
    if (!view) { page.draw(name, [], page.layout([], {})); return; }
    var made = view.shown.flatMap(function (line, number) { return panel(view, line, number, shape); });
    shape.annotations.push({ xref: "paper", yref: "paper", x: 0, y: 1, xanchor: "left", yanchor: "bottom", yshift: view.together ? 20 : 6, showarrow: false, align: "left",
      text: plain(figure.y.titles[view.scale]) + (view.left ? ";<br>and " + view.left + " more: choose a mode or DUT" : "") });
    var top = view.together && of.narrow() ? 76 : 60; // the title stands below the buttons where there is no room beside them
    // Margins as wide as the numbers: to measure those of each axis takes Plotly as long as all the rest.
    Object.assign(shape, { margin: { l: 4.8 * page.letters(), r: 14, t: top, b: 3.6 * page.letters() }, hovermode: view.together ? "x" : "closest", hoverdistance: view.together ? 20 : 40,
      height: view.room.height + 44 + top, showlegend: view.together && view.shown.length > 1 });
    var drawn = page.layout(view.shown.map(of.cell), shape);
    if (drawn.legend.orientation) { Object.assign(drawn.legend, { yref: "paper", y: -shape.margin.b / view.room.height, yanchor: "top" }); } // below the dates
    page.draw(name, made, drawn, shape.height);
  };
}
