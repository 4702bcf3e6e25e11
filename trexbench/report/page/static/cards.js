"use strict";
// A button beside each command that a card offers, which copies it.
(function () {
  function copied(button, code) {
    var said = function () { button.textContent = "copied"; };
    if (navigator.clipboard) { navigator.clipboard.writeText(code.textContent).then(said, function () { marked(code); }); } else { marked(code); }
  }

  // Without a clipboard (a page by http): the command is marked, for the reader to copy.
  function marked(code) { getSelection().selectAllChildren(code); }

  document.querySelectorAll(".steps code").forEach(function (code) {
    var button = document.createElement("button");
    button.type = "button";
    button.className = "unprinted";
    button.textContent = "copy";
    button.setAttribute("aria-label", "Copy: " + code.textContent);
    button.addEventListener("click", function () { copied(button, code); });
    code.after(" ", button);
  });
})();
