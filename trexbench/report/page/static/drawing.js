// What plots of all forms share: names, colours, axes, and the drawing itself. choice: what the reader chose; printed: whether the page is on paper.
function plotTools(data, choice, printed) {
  var PAPER = 680; // pixels
  var UNUSED = ["lasso2d", "select2d", "sendChartToCloud"], DRAGGED = ["zoom2d", "pan2d"]; // buttons
  var WIDE = 10, AROUND = 0.1; // times the least, from which an axis has a log scale; the share around a value that an axis spans at least
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  var touched = window.matchMedia("(pointer: coarse)"); // a swipe over a plot scrolls the page

  function id(name) { return document.getElementById(name); }

  // The plots read a few tags and entities in text: none of ours shall be one.
  function plain(text) {
    if (!/[&<>$]| us\b/.test(text)) { return String(text); } // most of many thousand points
    return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\$/g, "&#36;")
      .replace(/-&gt;/g, "\u2192").replace(/&gt;= /g, "\u2265 ").replace(/(\d) us\b/g, "$1 \u00b5s");
  }

  function ticked(name) {
    return Array.from(document.querySelectorAll("input[name=" + name + "]:checked"), function (box) { return box.value; });
  }

  // Whether the choice has the cell, whatever DUTs are ticked.
  function within(cell, now) {
    if (cell.tcp) { return !now.tcp || cell.mode === now.tcp; }
    return (!now.mode || cell.mode === now.mode) && (!now.traffic || (now.traffic === "bidir") === cell.bidir);
  }

  function chosen(cell, now) { return within(cell, now) && now.columns[cell.column]; }

  // What is said of a cell beside its DUT: only what the choice leaves open, or the whole.
  function beside(cell, now, whole) {
    if (cell.tcp) { return now.tcp && !whole ? [] : [cell.tcp]; }
    return [now.mode ? "" : cell.mode, now.traffic ? "" : cell.bidir ? "bidir" : "uni", cell.strategy].filter(Boolean);
  }

  function label(cell, now, whole) { return short([data.columns[cell.column].name].concat(beside(cell, now, whole))); }

  // A legend does not break a name.
  function short(parts) {
    var text = parts.join(" "), most = width() < 640 ? 36 : 60;
    return plain(text.length > most ? text.slice(0, most - 1) + "\u2026" : text);
  }

  function palette() {
    return { colours: dark.matches && !printed() ? data.palette.dark : data.palette.light, markers: data.palette.markers };
  }

  // So many numbers that plotly takes 1, 2 and 5 of each power of ten, or over more than two powers these alone.
  function numbers(powers) { return powers > 2 ? Math.ceil(powers) : Math.max(2, Math.floor(powers / 0.31)); }

  // The axis for these values: it has numbers even for a single one, and a difference that means nothing is not drawn as a slope.
  function fitted(values) {
    if (!values.length) { return {}; }
    var low = Math.min.apply(null, values), high = Math.max.apply(null, values), middle = (low + high) / 2;
    if (low > 0 && high > WIDE * low) {
      var span = [Math.log10(low) - 0.1, Math.log10(high) + 0.1];
      return { type: "log", tickformat: ",.4~r", range: span, nticks: numbers(span[1] - span[0]) };
    }
    var half = Math.max(0.6 * (high - low), AROUND * Math.abs(middle)) || 1;
    return { range: [low < 0 ? middle - half : Math.max(0, middle - half), middle + half] };
  }

  function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

  function axis(title, more) {
    return Object.assign({ title: { text: title, standoff: 8 }, gridcolor: css("--grid"), linecolor: css("--line"),
      zerolinecolor: css("--line"), showline: true, automargin: true }, more || {});
  }

  // Their size in pixels: the reader may want larger ones.
  function letters() { return parseFloat(getComputedStyle(document.body).fontSize) * (document.documentElement.clientWidth < 640 ? 0.73 : 0.81); }

  function watermark(mark, narrow) {
    return { text: mark.toUpperCase(), xref: "paper", yref: "paper", x: 0.5, y: 0.5, showarrow: false, opacity: 0.13, textangle: -24,
      font: { size: narrow ? 38 : 68, color: css("--bad") } };
  }

  function layout(shown, more) {
    var narrow = document.documentElement.clientWidth < 640;
    var marked = shown.find(function (cell) { return data.columns[cell.column].mark; });
    var notes = marked ? [watermark(data.columns[marked.column].mark, narrow)] : [];
    if (!shown.length) { notes.push({ text: "no run of this choice has this figure", xref: "paper", yref: "paper", x: 0.5, y: 0.5, showarrow: false }); }
    var base = {
      paper_bgcolor: css("--ground"), plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest", dragmode: touched.matches ? false : "zoom", annotations: notes,
      font: { color: css("--ink"), family: "system-ui, sans-serif", size: letters() },
      margin: { l: 60, r: 14, t: 34, b: 44 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--soft"), activecolor: css("--link") },
      hoverlabel: { bgcolor: css("--panel"), bordercolor: css("--line"), font: { color: css("--ink") } },
      legend: narrow || printed() ? { orientation: "h", yref: "container", y: 0, yanchor: "bottom", font: { size: 0.9 * letters() } } : { x: 1.01, y: 1 }
    };
    Object.keys(more).forEach(function (key) { base[key] = key === "annotations" ? base[key].concat(more[key]) : more[key]; });
    if (!shown.length) { // without figures Plotly's axes would go from -1 to 6
      ["xaxis", "yaxis"].concat(Object.keys(more)).forEach(function (key) { if (key.indexOf("axis") === 1) { base[key] = { visible: false }; } });
    }
    return base;
  }

  function digits(value) { return Number(value.toPrecision(4)).toString(); }

  function mpps(pps) { return pps >= 1e6 ? digits(pps / 1e6) + " Mpps" : digits(pps / 1e3) + " kpps"; }

  // height: in pixels, where it follows from what is drawn.
  function draw(name, traces, shape, height) {
    var place = id("plot-" + name), now = choice();
    var paper = place.layout && place.layout.autosize === false; // as it was drawn before
    place.style.height = height ? height + "px" : "";
    if (printed()) { Object.assign(shape, { width: PAPER, height: height || (place.classList.contains("tall") ? 480 : 340), autosize: false }); }
    // A zoom belongs to this axis, in its unit, and to this choice.
    shape.uirevision = JSON.stringify(now);
    Object.keys(shape).filter(function (key) { return key.indexOf("axis") === 1; }).forEach(function (key) {
      shape[key].uirevision = JSON.stringify([now, shape[key].title && shape[key].title.text, shape[key].type]);
    });
    window.Plotly.react(place, traces, shape, { displaylogo: false, responsive: true, toImageButtonOptions: { filename: name, scale: 2 },
      modeBarButtonsToRemove: UNUSED.concat(touched.matches ? DRAGGED : []) });
    if (paper && !printed()) { window.Plotly.Plots.resize(place); }
    place.querySelectorAll("svg.main-svg").forEach(function (picture) { picture.setAttribute("aria-hidden", "true"); }); // the table says the same
  }

  function width() { return printed() ? PAPER : document.documentElement.clientWidth; }

  function wrapped(text) { return text.length > 40 ? plain(text).replace(/(.{40,60}?) /g, "$1<br>") : plain(text); }

  return { data: data, printed: printed, ticked: ticked, width: width, wrapped: wrapped, id: id, plain: plain, chosen: chosen, label: label, beside: beside, short: short,
    palette: palette, letters: letters, css: css, axis: axis, layout: layout, digits: digits, mpps: mpps, fitted: fitted, draw: draw };
}
