"use strict";
// Tables: sorted by a click on a head, filtered by the choice of the plots, saved as CSV. But for the further rows of long ones, which are packed, they are whole without it.
var fillTables = (function () {
  var NUMBER = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/;
  var touched = false; // the tables above the controls follow them only when somebody used them
  var tables = [], controls = document.getElementById("controls");

  function all(root, selector) { return Array.prototype.slice.call(root.querySelectorAll(selector)); }

  function make(tag, name, text) {
    var one = document.createElement(tag);
    one.className = name;
    one.textContent = text || "";
    return one;
  }

  function raw(cell) {
    var text = cell.dataset.v !== undefined ? cell.dataset.v : cell.textContent.trim();
    return text === "-" ? "" : text;
  }

  function value(cell) {
    var text = cell ? raw(cell).replace(/^[<>]=/, "") : "";
    return text === "" ? null : NUMBER.test(text) ? Number(text) : text;
  }

  // A rate within a text as its number of frames: 10 Mpps stands behind 14.88 kpps.
  function comparable(text) {
    return text.replace(/(\d+(?:\.\d+)?) ([kMG]?)pps/g, function (_, number, prefix) {
      return String(Math.round(number * { "": 1, k: 1e3, M: 1e6, G: 1e9 }[prefix]));
    });
  }

  // Numbers before words, nothing last, whichever way it is sorted.
  function compare(one, other, sign) {
    if (one === null || other === null) { return (one === null) - (other === null); }
    if (typeof one !== typeof other) { return typeof one === "number" ? -1 : 1; }
    return sign * (typeof one === "number" ? one - other : comparable(one).localeCompare(comparable(other), "en", { numeric: true }));
  }

  function sort(table, head) {
    var next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort") || "none"];
    all(table, "thead th").forEach(function (one) { if (one.hasAttribute("aria-sort")) { one.setAttribute("aria-sort", "none"); } });
    head.setAttribute("aria-sort", next);
    all(table, "tbody").forEach(function (body) {
      var rows = all(body, "tr:not(.block)"), column = head.cellIndex;
      rows.sort(function (one, other) {
        var first = Number(one.dataset.at) - Number(other.dataset.at);
        return next === "none" ? first : compare(value(one.cells[column]), value(other.cells[column]), next === "ascending" ? 1 : -1) || first;
      });
      rows.forEach(function (row) { body.appendChild(row); });
    });
  }

  function harmless(text) { return /^[=+\-@\t\r]/.test(text) && !NUMBER.test(text) ? "'" + text : text; }

  function line(texts) {
    return texts.map(function (text) {
      var one = harmless(text);
      return /[",\n\r]/.test(one) ? '"' + one.replace(/"/g, '""') + '"' : one;
    }).join(",") + "\n";
  }

  // The rows that are shown, in the order in which they are shown.
  function csv(table) {
    var deltas = table.dataset.deltas !== undefined, blocks = table.dataset.blocks;
    function shown(cell) { return !cell.classList.contains("off"); }
    var heads = [];
    Array.prototype.filter.call(table.tHead.rows[table.tHead.rows.length - 1].cells, shown).forEach(function (head) {
      var name = head.dataset.h !== undefined ? head.dataset.h : head.textContent.trim();
      heads.push(head.dataset.unit ? name + ", " + head.dataset.unit : name);
      if (deltas && head.dataset.column) { heads.push(name + ", change, %"); }
    });
    var text = line((blocks ? [blocks] : []).concat(heads));
    all(table, "tbody").forEach(function (body) {
      var block = blocks ? [raw(body.rows[0].cells[0])] : [];
      all(body, "tr:not(.block):not(.off)").forEach(function (row) {
        var texts = [];
        Array.prototype.filter.call(row.cells, shown).forEach(function (cell) {
          texts.push(raw(cell));
          if (deltas && cell.dataset.column) { texts.push(cell.dataset.change || ""); }
        });
        text += line(block.concat(texts));
      });
    });
    return text;
  }

  function save(link, table) {
    URL.revokeObjectURL(link.href);
    link.href = URL.createObjectURL(new Blob([csv(table)], { type: "text/csv;charset=utf-8" }));
  }

  // A head becomes a button; the words that stand below it (what changed in a column) stay.
  function button(table, head) {
    var one = make("button", "sort");
    one.type = "button";
    while (head.firstChild && head.firstChild.nodeName !== "SMALL") { one.appendChild(head.firstChild); }
    head.insertBefore(one, head.firstChild);
    head.setAttribute("aria-sort", "none");
    one.addEventListener("click", function () { sort(table, head); });
  }

  function equip(table) {
    var region = table.closest(".wide");
    var bar = make("p", "sheetbar unprinted"), count = make("span", "rows"), whole = make("button", "whole", "all rows"), link = make("a", "csv", "CSV");
    whole.type = "button";
    whole.hidden = true;
    link.href = "#";
    link.download = table.closest(".sheet").dataset.name + ".csv";
    link.setAttribute("aria-label", "This table as CSV");
    link.addEventListener("click", function () { save(link, table); });
    whole.addEventListener("click", function () { table.dataset.whole = "1"; filter(table); });
    [count, whole, link].forEach(function (part) { bar.appendChild(part); });
    region.parentNode.insertBefore(bar, region);
    all(table, "tbody").forEach(function (body) {
      all(body, "tr:not(.block)").forEach(function (row, at) { row.dataset.at = at; });
    });
    if (table.tHead.rows.length === 1) {
      all(table, "thead th").forEach(function (head) { button(table, head); });
    }
    table.sheetbar = { count: count, whole: whole };
    tables.push(table);
  }

  function selected(name) {
    var one = document.getElementById(name);
    return one ? one.value : "";
  }

  function choice() {
    var now = { mode: selected("mode"), way: selected("traffic"), tcp: selected("tcp-mode"), metric: selected("metric"), duts: {} };
    all(document, "input[name=column]").forEach(function (box) { now.duts[box.value] = box.checked; });
    return now;
  }

  // Of a row whatever it names must be chosen; TCP has a choice of its own.
  function wanted(row, now) {
    return ["mode", "tcp", "metric"].concat(row.dataset.tcp === undefined ? ["way"] : []).every(function (name) {
      return row.dataset[name] === undefined || !now[name] || row.dataset[name] === now[name];
    }) && (row.dataset.dut === undefined || now.duts[row.dataset.dut]);
  }

  function filter(table) {
    var grid = table.classList.contains("grid"), now = choice(), open = table.dataset.whole || (grid && !touched);
    var rows = all(table, "tbody tr:not(.block)");
    rows.forEach(function (row) { row.classList.toggle("off", !open && !wanted(row, now)); });
    all(table, "[data-column]").forEach(function (cell) {
      cell.classList.toggle("off", !open && !now.duts[cell.dataset.column]);
    });
    all(table, "tbody").forEach(function (body) { body.classList.toggle("off", !body.querySelector("tr:not(.block):not(.off)")); });
    var left = rows.filter(function (row) { return !row.classList.contains("off"); }).length;
    table.sheetbar.count.textContent = left < rows.length ? left + " of " + rows.length + " rows, by the choice above the plots" : "";
    table.sheetbar.whole.hidden = left === rows.length && !table.querySelector("th.off");
  }

  // What a link leads to shall not be folded away.
  document.addEventListener("click", function (event) {
    var link = event.target.closest("a[href^='#']"), target = link && document.getElementById(link.getAttribute("href").slice(1));
    for (var part = target && target.closest("details"); part; part = part.parentElement.closest("details")) { part.open = true; }
  });
  var folded = []; // what printing unfolded, and folds again
  window.addEventListener("afterprint", function () { folded.splice(0).forEach(function (part) { part.open = false; }); });
  window.addEventListener("beforeprint", function () {
    all(document, "#table details, #changes details, details.doubtful, #trends > details").forEach(function (part) {
      if (!part.open) { part.open = true; folded.push(part); }
    });
  });
  all(document, ".sheet table:not([data-rows])").forEach(equip);

  // rows: of long lists, and the further ones of long tables, which begin with what is left of the block shown last.
  function fill(rows) {
    all(document, "ul[data-rows]").forEach(function (list) { list.insertAdjacentHTML("beforeend", rows[list.dataset.rows]); });
    all(document, "table[data-rows]").forEach(function (table) {
      var last = table.tBodies[table.tBodies.length - 1];
      table.insertAdjacentHTML("beforeend", rows[table.dataset.rows]);
      var next = last.nextElementSibling;
      all(next, "tr:not(.block)").forEach(function (row) { last.appendChild(row); });
      next.remove();
      equip(table);
    });
  }

  if (!controls) { return fill; }

  function follow() {
    tables.forEach(function (table) {
      delete table.dataset.whole;
      filter(table);
    });
  }

  document.addEventListener("change", function (event) {
    touched = touched || controls.contains(event.target);
    follow();
  });
  // The plots set the choice when they are first drawn, and by links.
  document.addEventListener("click", function (event) { if (event.target.closest("[data-show]")) { setTimeout(follow); } });
  window.addEventListener("popstate", function () { setTimeout(follow); });
  new MutationObserver(follow).observe(document.documentElement, { attributeFilter: ["data-ready"] });
  return fill;
})();
