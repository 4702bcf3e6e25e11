"use strict";
// Only in a page that is served: what is measured now, and the page again when a run ended.
(function () {
  var EVERY_MS = 3000, place = document.getElementById("now");

  // Only what is new: a screen reader says it.
  function say(lines) {
    var text = lines.join(". ");
    if (place.textContent !== text) { place.textContent = text; }
    place.hidden = !text;
  }

  async function ask() {
    try {
      var state = await (await fetch("state")).json();
      if (state.version !== place.dataset.version) { location.reload(); return; }
      say(state.lines);
    } catch (error) {
      say(["No answer from trexbench report --watch; trying again"]);
    }
    setTimeout(ask, EVERY_MS);
  }

  ask();
})();
