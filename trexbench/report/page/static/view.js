// The view in the address: what the controls show, so that a link to the page opens it again. redraw: after another view came.
function addressed(redraw) {
  var kept = false; // whether there is anything but the page's own first view
  var first = ""; // that view

  function controls(kind) {
    return Array.prototype.slice.call(document.querySelectorAll(".controls " + kind + ", .switches " + kind + ", #documents " + kind));
  }

  // A DUT goes by its name: its number is of this page only.
  function value(box) { return box.name === "column" ? box.parentNode.textContent.trim() : box.name ? box.value : "1"; }

  // Check boxes by what they are about; one that stands alone is a group of its own.
  function groups() {
    var found = new Map();
    controls("input[type=checkbox]").forEach(function (box) {
      var key = box.name === "column" ? "dut" : box.name || box.id;
      found.set(key, (found.get(key) || []).concat(box));
    });
    return found;
  }

  function view(part) {
    var told = new URLSearchParams();
    controls("select").forEach(function (one) { told.set(one.id, one.value); });
    groups().forEach(function (boxes, key) {
      if (boxes.every(function (box) { return box.checked === box.defaultChecked; })) { return; }
      var ticked = boxes.filter(function (box) { return box.checked; });
      (ticked.length ? ticked.map(value) : [""]).forEach(function (one) { told.append(key, one); });
    });
    if (part) { told.set("at", part); }
    return "#" + told;
  }

  // how: "pushState" for what Back shall take back, else "replaceState".
  function write(how, part) {
    try { history[how](null, "", view(part)); } catch (error) { return; } // a frame may not
  }

  // Sets known controls to values that they have; false where the address says nothing of any. Without a view it is the first one.
  function read() {
    var told = new URLSearchParams(location.hash.slice(1) || first.slice(1)), known = false;
    controls("select").forEach(function (one) {
      if (!Array.prototype.some.call(one.options, function (option) { return told.get(one.id) === option.value; })) { return; }
      one.value = told.get(one.id);
      known = true;
    });
    groups().forEach(function (boxes, key) {
      var wanted = told.getAll(key);
      if (known && !wanted.length) { boxes.forEach(function (box) { box.checked = box.defaultChecked; }); }
      if (!wanted.some(function (one) { return !one || boxes.some(function (box) { return value(box) === one; }); })) { return; }
      boxes.forEach(function (box) { box.checked = wanted.indexOf(value(box)) >= 0; });
      known = true;
    });
    return known;
  }

  function place() {
    var part = new URLSearchParams(location.hash.slice(1)).get("at");
    return part && document.querySelector("section#" + CSS.escape(part));
  }

  function keep() {
    kept = true;
    if (view() !== location.hash) { write("pushState"); }
  }

  function open() {
    first = view();
    kept = Boolean(location.hash) && read();
    if (place()) { place().scrollIntoView(); }
    window.addEventListener("hashchange", function () {
      var part = location.hash.slice(1);
      if (part && document.querySelector("section#" + CSS.escape(part))) {
        if (kept) { write("replaceState", part); } // the address keeps the view
      } else if (read()) {
        kept = true;
        redraw();
      }
    });
  }

  return { open: open, keep: keep };
}
