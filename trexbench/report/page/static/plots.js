// Every plot is a figure made in Python (plots.py), whose form draws it.
function figurePlot(page, name) {
  var of = plotLines(page), select = document.querySelector(".switches[data-for=" + name + "] select.run");
  var forms = { stack: stackForm(page, of, name), grid: gridForm(page, of, name), rows: rowsForm(page, of, name) };
  var documents = null;
  return function (now) {
    var figure = page.data.figures[name][select ? select.selectedIndex : 0], lines = of.visible(figure, now);
    forms[figure.form || "stack"](figure, lines, now);
    if (figure.dated) {
      documents = documents || trendDocuments(page);
      documents(figure, lines, now, of.text);
    }
  };
}
