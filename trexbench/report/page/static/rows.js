// Panels side by side, as many as the page is wide; hollow marks are what the filled ones are compared with.
function rowsForm(page, of, name) {
  var ROW = 1.46, HEAD = 1.85, TOP = 3.4, BOTTOM = 3.54, LETTER = 0.6; // heights of a row, a DUT's head, a panel's edges, and a letter's width, in letters
  var NAMES = 19; // letters that a panel takes at least
  var plain = page.plain;

  // A head for each DUT, a row for each of its cells; where they stand, counted in rows from the top.
  function arranged(figure, lines, now) {
    var rows = [], heads = [], at = 0, last = null, by = {}, columns = lines.map(function (line) { return of.cell(line).column; });
    var own = new Set(lines.map(function (line) { return line.cells[0]; })).size === new Set(columns).size;
    lines.forEach(function (line) {
      var number = line.cells[0], cell = of.cell(line), dut = plain(page.data.columns[cell.column].name), whole = figure.follows === "duts";
      if (by[number] !== undefined) { return; }
      if (!own && cell.column !== last) {
        heads.push({ at: at + HEAD / ROW / 2, words: dut });
        at += HEAD / ROW;
        last = cell.column;
      }
      by[number] = at + 0.5;
      rows.push({ at: at + 0.5, words: own ? page.label(cell, now, whole) : page.short(page.beside(cell, now, whole)) || "ramp" });
      at += 1;
    });
    return { rows: rows, heads: heads, length: at, of: function (line) { return by[line.cells[0]]; } };
  }

  // Panels and how they stand: so many abreast, in so many bands, each so many letters high.
  function placed(figure, lines, found) {
    var panels = [figure.x].concat(figure.below || []).map(function (one, panel) {
      return { axis: one, lines: lines.filter(function (line) { return (line.panel || 0) === panel; }) };
    }).filter(function (one) { return one.lines.length; });
    var longest = Math.max.apply(null, found.rows.map(function (row) { return row.words.length; }).concat(10));
    var wide = page.width() / page.letters() - longest / 2, abreast = Math.max(1, Math.min(panels.length, Math.floor(wide / NAMES)));
    var band = found.length * ROW + TOP + BOTTOM;
    return { panels: panels, abreast: abreast, share: 1 / Math.min(abreast, panels.length || 1), letters: wide / abreast, band: band, height: (Math.ceil(panels.length / abreast) || 1) * band };
  }

  // From the least that is drawn, intervals included, to the most, and to the end of the words beside it.
  function reach(panel, room) {
    var ends = panel.lines.flatMap(function (line) {
      return of.across(line).flatMap(function (value, at) {
        var apart = (line.apart || [])[at] || 0;
        return [value - apart, value + apart];
      });
    });
    var low = Math.min.apply(null, ends.concat(0)), high = panel.axis.span ? panel.axis.span[1] : Math.max.apply(null, ends.concat(panel.axis.fit ? 1 : 0));
    var longest = Math.max.apply(null, panel.lines.map(function (line) { return line.words[0].length; }));
    return { low: low, high: high, end: low + (high - low) / (1 - Math.min(0.6, (LETTER * longest + 3) / room.letters)) };
  }

  function same(_, value) { return value; }

  function points(line, figure, now, at, axes) {
    var flat = Object.assign({}, line, { y: of.across(line).map(function () { return at; }), apart: undefined, width: 3 });
    return of.trace(flat, figure, page.label(of.cell(line), now), same, same, axes, {
      showlegend: false, error_x: { type: "data", array: line.apart || [], visible: Boolean(line.apart), color: page.css("--ink"), thickness: 1.4, width: 4 }
    });
  }

  function figures(panel, found, end, axes) {
    return { type: "scatter", mode: "text", x: panel.lines.map(function () { return end; }), y: panel.lines.map(found.of), xaxis: axes.x, yaxis: axes.y,
      text: panel.lines.map(function (line) { return plain(line.words[0]); }), textposition: "middle left", textfont: { size: 0.92 * page.letters() },
      hoverinfo: "skip", showlegend: false, cliponaxis: false };
  }

  function acrossAxis(panel, place, room, span, anchor) {
    return page.axis("", { domain: [place * room.share + (place ? 0.015 : 0), (place + 1) * room.share - (place < room.abreast - 1 ? 0.015 : 0)], anchor: anchor,
      range: [span.low - 0.03 * (span.high - span.low), span.end], fixedrange: true, nticks: 5, tickangle: 0, zeroline: span.low < 0,
      tickvals: panel.axis.span ? [0, 50, 100] : undefined });
  }

  // The names of a band's rows.
  function namesAxis(found, band, room, anchor) {
    return page.axis("", { domain: [1 - (band * room.band + TOP + found.length * ROW) / room.height, 1 - (band * room.band + TOP) / room.height],
      range: [found.length, 0], fixedrange: true, showgrid: false, zeroline: false, anchor: anchor,
      tickvals: found.rows.map(function (row) { return row.at; }), ticktext: found.rows.map(function (row) { return of.cut(row.words, of.narrow() ? 22 : 60); }) });
  }

  return function (figure, lines, now) {
    var found = arranged(figure, lines, now), room = placed(figure, lines, found), made = [], shape = { annotations: [], shapes: [], showlegend: false };
    function note(words, x, more) {
      shape.annotations.push(Object.assign({ text: words, x: 0, xref: x + " domain", xanchor: "left", showarrow: false }, more));
    }
    room.panels.forEach(function (panel, number) {
      var band = Math.floor(number / room.abreast), place = number % room.abreast, x = "x" + of.panelNumber(number), y = "y" + of.panelNumber(band), span = reach(panel, room);
      panel.lines.forEach(function (line) { made.push(points(line, figure, now, found.of(line), { x: x, y: y })); });
      made.push(figures(panel, found, span.end, { x: x, y: y }));
      shape["xaxis" + x.slice(1)] = acrossAxis(panel, place, room, span, y);
      if (!place) {
        shape["yaxis" + y.slice(1)] = namesAxis(found, band, room, x);
        found.heads.forEach(function (head) { note("<b>" + of.cut(head.words, of.narrow() ? 20 : 80) + "</b>", x, { y: head.at, yref: y }); });
      }
      note(plain(panel.axis.title), x, { y: 1, yref: y + " domain", yanchor: "bottom", yshift: 4 });
    });
    shape.margin = { l: 10, r: 14, t: 0, b: 0 };
    shape.height = Math.max(room.height, TOP + BOTTOM + 6) * page.letters(); // Plotly keeps one unless it is given another
    page.draw(name, made, page.layout(lines.map(of.cell), shape), shape.height);
  };
}
