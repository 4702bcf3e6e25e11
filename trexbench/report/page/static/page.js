"use strict";
(async function () {
  if (!id("controls")) { document.documentElement.dataset.ready = "nothing to draw"; return; }
  if (typeof DecompressionStream === "undefined") { id("plain").hidden = false; return; }
  var LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;.=>?@^_`{|}~";
  var loaded = loading();
  var CONFIG = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["lasso2d", "select2d", "sendChartToCloud"] };
  var data = JSON.parse(await unpacked("data"));
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  var touched = window.matchMedia("(pointer: coarse)"); // a swipe over a plot scrolls the page
  var view = addressed(drawAll), printing = false, PAPER = 680;
  var WIDE = 10, AROUND = 0.1; // times the least, from which an axis has a log scale; the share around a value that an axis spans at least

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

  // Whether the choice has the cell, whatever DUTs are ticked.
  function within(cell, now) {
    if (cell.tcp) { return !now.tcp || cell.mode === now.tcp; }
    return (!now.mode || cell.mode === now.mode) && (!now.traffic || (now.traffic === "bidir") === cell.bidir);
  }

  function chosen(cell, now) { return within(cell, now) && now.columns[cell.column]; }

  // What is said of a cell beside its DUT: only what the choice leaves open, or the whole.
  function label(cell, now, whole) {
    var parts = [data.columns[cell.column].name];
    if (cell.tcp) { return short(parts.concat(now.tcp && !whole ? [] : [cell.tcp])); }
    if (!now.mode) { parts.push(cell.mode); }
    if (!now.traffic) { parts.push(cell.bidir ? "bidir" : "uni"); }
    if (cell.strategy) { parts.push(cell.strategy); }
    return short(parts);
  }

  // A legend does not break a name.
  function short(parts) {
    var text = parts.join(" "), most = width() < 640 ? 36 : 60;
    return plain(text.length > most ? text.slice(0, most - 1) + "\u2026" : text);
  }

  function palette() {
    return { colours: dark.matches && !printing ? data.palette.dark : data.palette.light, markers: data.palette.markers };
  }

  // An axis with a log scale, whose numbers are plain ones.
  function decades() { return { type: "log", tickformat: ",.4~r" }; }

  // So many numbers that plotly takes 1, 2 and 5 of each power of ten, or over more than two powers these alone.
  function numbers(powers) { return powers > 2 ? Math.ceil(powers) : Math.max(2, Math.floor(powers / 0.31)); }

  // The axis for these values: it has numbers even for a single one, and a difference that means nothing is not drawn as a slope.
  function fitted(values) {
    if (!values.length) { return {}; }
    var low = Math.min.apply(null, values), high = Math.max.apply(null, values), middle = (low + high) / 2;
    if (low > 0 && high > WIDE * low) { return Object.assign(decades(), { range: [Math.log10(low) - 0.1, Math.log10(high) + 0.1], nticks: numbers(Math.log10(high / low) + 0.2) }); }
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

  function layout(shown, more) {
    var narrow = document.documentElement.clientWidth < 640;
    var notes = shown.some(function (cell) { return data.columns[cell.column].simulated; }) ? [{
      text: "SIMULATED", xref: "paper", yref: "paper", x: 0.5, y: 0.5, showarrow: false, opacity: 0.13, textangle: -24,
      font: { size: narrow ? 38 : 68, color: css("--bad") }
    }] : [];
    if (!shown.length) { notes.push({ text: "no run of this choice", xref: "paper", yref: "paper", x: 0.5, y: 0.5, showarrow: false }); }
    var base = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest", dragmode: touched.matches ? false : "zoom", annotations: notes,
      font: { color: css("--ink"), family: "system-ui, sans-serif", size: letters() },
      margin: { l: 60, r: 14, t: 34, b: 44 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--soft"), activecolor: css("--link") }, hoverlabel: { bgcolor: css("--panel"), bordercolor: css("--line"), font: { color: css("--ink") } },
      legend: narrow || printing ? { orientation: "h", yref: "container", y: 0, yanchor: "bottom", font: { size: 0.9 * letters() } } : { x: 1.01, y: 1 }
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
    var paper = place.layout && place.layout.autosize === false; // as it was drawn before
    place.style.height = height ? height + "px" : "";
    if (printing) { Object.assign(shape, { width: PAPER, height: height || (place.classList.contains("tall") ? 480 : 340), autosize: false }); }
    // A zoom belongs to this axis, in its unit, and to this choice.
    shape.uirevision = JSON.stringify(choice());
    Object.keys(shape).filter(function (key) { return key.indexOf("axis") === 1; }).forEach(function (key) {
      shape[key].uirevision = JSON.stringify([choice(), shape[key].title && shape[key].title.text, shape[key].type]);
    });
    window.Plotly.react(place, traces, shape, CONFIG);
    if (paper && !printing) { window.Plotly.Plots.resize(place); }
    place.querySelectorAll("svg.main-svg").forEach(function (picture) { picture.setAttribute("aria-hidden", "true"); }); // the table says the same
  }

  function width() { return printing ? PAPER : document.documentElement.clientWidth; }

  function wrapped(text) {
    return plain(text).replace(/(.{40,60}?) /g, "$1<br>");
  }

  var tools = { printed: function () { return printing; }, ticked: ticked, width: width, wrapped: wrapped, data: data, id: id, plain: plain, chosen: chosen, label: label, palette: palette, letters: letters, css: css, axis: axis,
    layout: layout, digits: digits, mpps: mpps, fitted: fitted, draw: draw };
  tools.documents = trendDocuments(tools);
  var PLOTS = Object.keys(data.figures).filter(function (name) { return id("plot-" + name); }).map(function (name) { return [name, figurePlot(tools, name)]; });

  // Those in sight at once, on paper all; then one after the other, the nearest first, whenever the browser has time.
  // A later choice ends an earlier one's drawing.
  var turn = 0, LONGEST_WAIT_MS = 100;
  async function drawAll() {
    var mine = ++turn;
    offer(choice());
    var waiting = PLOTS.map(function (plot) {
      var place = id("plot-" + plot[0]);
      place.setAttribute("aria-busy", "true");
      return { place: place, away: away(place), draw: plot[1] };
    }).sort(function (one, other) { return one.away - other.away; });
    for (var at = 0; at < waiting.length; at++) {
      if (waiting[at].away > 0 && !printing) { await idle(); }
      if (mine !== turn) { return; }
      waiting[at].draw(choice());
      waiting[at].place.removeAttribute("aria-busy");
    }
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  }

  // A direction that only bidirectional runs have is not offered for the others.
  function offer(now) {
    all("input[name=direction]").forEach(function (box) { box.parentNode.hidden = now.traffic === "uni" && !("uni" in box.dataset); });
  }

  // How far the place is out of sight, in pixels.
  function away(place) {
    var box = place.getBoundingClientRect();
    return Math.max(0, -box.bottom, box.top - window.innerHeight);
  }

  function idle() {
    return new Promise(function (done) { (window.requestIdleCallback || setTimeout)(done, { timeout: LONGEST_WAIT_MS }); });
  }

  function settle() {
    ["controls"].map(id).concat(all(".switches")).forEach(function (part) { if (part) { part.hidden = false; } });
    all(".controls, .switches, #documents").forEach(function (part) { part.addEventListener("change", function () { drawAll(); view.keep(); }); });
    id("controls").addEventListener("submit", function (event) { event.preventDefault(); });
    all(".plot").forEach(function (place) {
      place.classList.add("drawn");
      var told = place.closest("figure").querySelector("figcaption");
      told.id = told.id || place.id + "-told";
      place.setAttribute("aria-describedby", told.id);
      // Fingers scroll the page; a tap comes as a click.
      place.addEventListener("touchstart", function (event) { event.stopPropagation(); }, { capture: true, passive: true });
    });
    all("[data-show]").forEach(function (link) { link.addEventListener("click", function () { show(JSON.parse(link.dataset.show)); }); });
    dark.addEventListener("change", drawAll);
    window.addEventListener("beforeprint", function () { paper(true); });
    window.addEventListener("afterprint", function () { paper(false); });
    window.matchMedia("print").addEventListener("change", function (media) { paper(media.matches); });
    document.addEventListener("click", function (event) { fold(event.target); });
    document.addEventListener("keydown", function (event) { if (event.key === "Escape") { fold(null); } });
  }

  // Menus close, except the one that has this element.
  function fold(element) {
    all("details.pick[open]").forEach(function (menu) {
      if (menu.contains(element)) { return; }
      if (menu.contains(document.activeElement)) { menu.querySelector("summary").focus(); }
      menu.open = false;
    });
  }

  // A change's own cells and figure, and their ramps before and after it.
  function show(wanted) {
    Object.keys(wanted).forEach(function (name) { if (id(name)) { id(name).value = wanted[name]; } });
    all("input[name=column], input[name=older][value=change]").forEach(function (box) { box.checked = true; });
    drawAll();
    view.keep();
  }

  // On paper: a page's width, no dark ground; tables.js unfolds.
  function paper(on) {
    if (printing === on) { return; }
    printing = on;
    document.documentElement.classList.toggle("paper", on);
    drawAll();
  }

  // As _packed in html.py left it: five digits of base 85 for four bytes.
  async function unpacked(name) {
    var packed = id(name).textContent, rest = (5 - packed.length % 5) % 5, bytes = new DataView(new ArrayBuffer((packed.length + rest) / 5 * 4)), digits = new Uint8Array(128).fill(84);
    LETTERS.split("").forEach(function (one, digit) { digits[one.charCodeAt(0)] = digit; });
    for (var at = 0; at < packed.length; at += 5) {
      var value = 0;
      for (var next = at; next < at + 5; next++) { value = value * 85 + (next < packed.length ? digits[packed.charCodeAt(next)] : 84); }
      bytes.setUint32(at / 5 * 4, value);
    }
    return new Response(new Blob([new Uint8Array(bytes.buffer, 0, bytes.byteLength - rest)]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  // The page has loaded only when the plots in sight are drawn and all can be: whoever prints it unseen waits for that. An open document within delays it.
  function loading() {
    var within = document.createElement("iframe");
    within.hidden = true;
    document.body.appendChild(within);
    within.contentDocument.open();
    return function () { within.contentDocument.close(); within.remove(); };
  }

  var script = document.createElement("script");
  script.textContent = await unpacked("library");
  document.head.appendChild(script); // the page's policy knows its digest
  if (window.Plotly) {
    settle();
    view.open();
    drawAll();
  } else { id("plain").hidden = false; }
  loaded();
})();
