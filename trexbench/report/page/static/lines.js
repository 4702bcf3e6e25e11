// The lines of plots made in Python (plots.py): those that the reader's choice leaves, in the scales that they come with, as Plotly's traces.
function plotLines(page) {
  var NARROW = 600, SIGNS = 9; // pixels of the page; markers along a line at most
  var data = page.data, plain = page.plain;
  var drawn = []; // lines of the last drawing

  function narrow() { return page.width() < NARROW; }

  function cell(line) { return data.cells[line.cells[0]]; }

  function goes(of, figure, now) {
    var dut = now.columns[of.column];
    if (figure.follows === "none") { return true; }
    if (figure.follows === "cells") { return page.chosen(of, now); }
    return dut && (figure.follows === "duts" || !now.traffic || (now.traffic === "bidir") === of.bidir);
  }

  function ticked(tag, values) {
    var box = page.id(tag);
    return box ? box.checked : page.ticked(tag).some(function (value) { return values.indexOf(value) >= 0; });
  }

  // Those of the chosen cells; where none of these goes the chosen ways, those of the chosen DUTs.
  function visible(figure, now) {
    function some(test) {
      return figure.lines.filter(function (line) { return line.cells.some(function (at) { return test(data.cells[at]); }); });
    }
    var tagged = some(function (of) { return goes(of, figure, now); });
    if (!figure.follows && !tagged.length) { tagged = some(function (of) { return now.columns[of.column]; }); }
    drawn = tagged.filter(function (line) {
      return Object.keys(line.tags || {}).every(function (tag) { return ticked(tag, line.tags[tag]); });
    });
    return drawn;
  }

  // The unit that the reader wants, as far as each line has it.
  function scaleOf(wanted, titles, lines) {
    return titles[wanted] && lines.every(function (line) { return line.scales[wanted]; }) ? wanted : titles.own ? "own" : "pps";
  }

  function across(line) { return data.arrays[line.x]; }

  function scaled(line, value, scale) {
    var of = scale && line.scales && line.scales[scale];
    return value === null || !of ? value : of[0] * value + of[1];
  }

  function signed(value) {
    var words = Math.abs(value).toFixed(1);
    return (words === "0.0" ? "" : value < 0 ? "\u2212" : "+") + words;
  }

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
    var of = line.cells.length > 1 && cell(line).given ? Object.assign({}, cell(line), { strategy: cell(line).given }) : cell(line);
    var words = figure.cells ? page.label(of, now) + plain(line.name || "") : plain(line.name || "");
    function older(other) { return other.tags && other.tags.older && other.cells[0] === line.cells[0]; }
    return words + (line.night && (!line.beside || drawn.some(older)) ? "<br>" + plain(line.night) : "");
  }

  function hue(line) { return line.colour === undefined ? cell(line).column : line.colour; }

  function colourOf(line) {
    var colours = page.palette().colours;
    return typeof line.colour === "string" ? page.css(line.colour) : colours[hue(line) % colours.length];
  }

  function symbols(line) {
    var markers = page.palette().markers, own = line.marker || markers[hue(line) % markers.length];
    return line.bounds ? line.bounds.map(function (is) { return own + (is ? "-open" : ""); }) : own;
  }

  // What is known of a point: its night, its text, and what changed then.
  function told(line, at, words) {
    var x = across(line)[at], marks = (line.marks || []).filter(function (mark) { return mark.x === x; });
    return ["<b>" + words + "</b>"].concat(text(line, at).split("; ").map(page.wrapped), marks.map(function (mark) {
      return "<span style=\"color:" + page.css(mark.colour) + "\">" + plain(mark.words) + "</span> " + page.wrapped(mark.text);
    })).join("<br>");
  }

  function markersOf(line, figure, colour) {
    var thin = /-(thin|open)/.test(line.marker || "") || line.bounds, few = across(line).length < 3 * SIGNS;
    return { color: colour, size: line.size || 9, symbol: symbols(line), maxdisplayed: few || figure.dated ? 0 : SIGNS,
      line: { width: thin ? 1.6 : 1, color: thin ? colour : page.css("--ground") } };
  }

  function intervalAcross(line, along, colour) {
    if (!line.within) { return { visible: false }; }
    var middle = along(line, across(line)[0]);
    return { type: "data", symmetric: false, array: [along(line, line.within[1]) - middle], arrayminus: [middle - along(line, line.within[0])], color: colour };
  }

  // along, up: how its figures are drawn; axes: of its panel.
  function trace(line, figure, words, along, up, axes, more) {
    var colour = colourOf(line), marked = line.marker || (line.bounds && !figure.dated), x = across(line), joined = line.dash !== "none";
    return Object.assign({
      x: x.map(function (value) { return along(line, value); }), y: line.y.map(function (value) { return up(line, value); }),
      xaxis: axes.x, yaxis: axes.y, type: "scatter", mode: joined ? marked ? "lines+markers" : "lines" : "markers",
      name: narrow() ? words.replace(/([^<>]{24,34}?) /g, "$1<br>") : words, legendgroup: line.cells[0] + words,
      connectgaps: false, opacity: line.opacity || 1, meta: line.cells[0],
      line: { color: colour, width: line.width || 1.5, dash: joined ? line.dash || "solid" : "solid" }, marker: markersOf(line, figure, colour),
      error_y: { type: "data", array: line.apart || [], visible: Boolean(line.apart), color: colour, thickness: 1.2, width: 4 },
      error_x: intervalAcross(line, along, colour), hoverinfo: "text", hoverlabel: { align: "left" },
      hovertext: line.y.map(function (value, at) {
        return value === null ? "" : told(line, at, (figure.dated ? plain(data.nights[x[at]]) + ", " : "") + words);
      })
    }, more);
  }

  // Its entities stay whole.
  function cut(words, most) {
    var parts = words.match(/&[^;]+;|[^]/g) || [];
    return parts.length > most ? parts.slice(0, most - 1).join("") + "\u2026" : words;
  }

  function panelNumber(number) { return number ? String(number + 1) : ""; }

  return { narrow: narrow, cell: cell, visible: visible, scaleOf: scaleOf, across: across, scaled: scaled, text: text, label: label,
    colourOf: colourOf, trace: trace, cut: cut, panelNumber: panelNumber };
}
