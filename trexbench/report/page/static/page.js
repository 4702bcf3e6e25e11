"use strict";
(async function () {
  if (typeof DecompressionStream === "undefined") { if (id("plain")) { id("plain").hidden = false; } return; }
  var LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;.=>?@^_`{|}~";
  var loaded = loading();
  var data = JSON.parse(await unpacked("data"));
  fillTables(data.rows);
  if (!id("controls")) { document.documentElement.dataset.ready = "nothing to draw"; loaded(); return; }
  var view = addressed(drawAll), printing = false, opened = false, plots = [];

  function id(name) { return document.getElementById(name); }

  function all(selector) { return Array.prototype.slice.call(document.querySelectorAll(selector)); }

  // A page without packets, or without TCP, lacks the controls of those.
  function selected(name) { return id(name) ? id(name).value : ""; }

  function choice() {
    var picked = {};
    all("input[name=column]").forEach(function (box) { picked[box.value] = box.checked; });
    return { mode: selected("mode"), traffic: selected("traffic"), unit: selected("unit"), tcp: selected("tcp-mode"), columns: picked };
  }

  // When the page opens those in sight at once, on paper all; else one after the other, the nearest first, whenever the
  // browser has time. A later choice ends an earlier one's drawing.
  var turn = 0, LONGEST_WAIT_MS = 100;
  async function drawAll() {
    var mine = ++turn;
    offer(choice());
    var waiting = plots.map(function (plot) {
      var place = id("plot-" + plot[0]);
      place.setAttribute("aria-busy", "true");
      return { place: place, away: away(place), draw: plot[1] };
    }).sort(function (one, other) { return one.away - other.away; });
    for (var at = 0; at < waiting.length; at++) {
      if (!printing && (waiting[at].away > 0 || (opened && at))) { await idle(); }
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
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
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

  // The page's policy knows their digests.
  for (var name of ["library", "plots"]) {
    var script = document.createElement("script");
    script.textContent = await unpacked(name);
    document.head.appendChild(script);
  }
  if (window.Plotly) {
    var tools = plotTools(data, choice, function () { return printing; });
    plots = Object.keys(data.figures).filter(function (name) { return id("plot-" + name); }).map(function (name) { return [name, figurePlot(tools, name)]; });
    settle();
    view.open();
    drawAll();
  } else { id("plain").hidden = false; }
  loaded();
  opened = true;
})();
