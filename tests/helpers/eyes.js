// What an eye would see of a page, measured in it. Every measure returns sentences: each tells one thing that is wrong.
(function () {
  var SLACK = 2; // pixels that the boxes of two texts may share: fonts leave room above and below their letters
  var WATERMARK = 0.3; // text as faint as this is ground, not to be read

  function words(text) { var one = text.replace(/\s+/g, " ").trim(); return one.length > 60 ? one.slice(0, 57) + "..." : one; }

  function where(element) {
    var section = element.closest("section, header, form, footer, [id]");
    var owned = element.closest("[id]");
    return owned ? "#" + owned.id : section ? section.tagName.toLowerCase() : "page";
  }

  function above(element) { var found = []; for (var one = element; one; one = one.parentElement) { found.push(one); } return found; }

  function opacity(element) { return above(element).reduce(function (all, one) { return all * Number(getComputedStyle(one).opacity); }, 1); }

  function shown(element) {
    return element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }) &&
      !element.closest("script, style, noscript, title, desc, template, option, defs, .gl-container");
  }

  // Kept by no-one but screen readers: clipped to a pixel.
  function unseen(element) {
    return above(element).some(function (one) {
      var box = one.getBoundingClientRect(), style = getComputedStyle(one);
      return style.position === "absolute" && style.overflow !== "visible" && box.width <= 1.5 && box.height <= 1.5;
    });
  }

  // The lines of all text that is drawn, each with its box on the page.
  function texts(root) {
    var walker = document.createTreeWalker(root || document.body, NodeFilter.SHOW_TEXT), found = [], node;
    var x = window.scrollX, y = window.scrollY, faint = new Map();
    while ((node = walker.nextNode())) {
      if (!node.data.trim()) { continue; }
      var element = node.parentElement;
      if (!faint.has(element)) { faint.set(element, !shown(element) || opacity(element) < WATERMARK || unseen(element)); }
      if (faint.get(element)) { continue; }
      var range = document.createRange();
      range.selectNodeContents(node);
      var boxes = Array.prototype.slice.call(range.getClientRects()).filter(function (one) { return one.width > 1 && one.height > 1; });
      boxes.forEach(function (box) {
        found.push({ element: element, node: node, text: words(node.data), left: box.left + x, right: box.right + x, top: box.top + y, bottom: box.bottom + y });
      });
    }
    return found;
  }

  function colour(text) {
    var srgb = /^color\(srgb ([^)]*)\)/.exec(text);
    var numbers = (text.match(/-?[\d.]+(e-?\d+)?/g) || []).map(Number);
    if (srgb) { numbers = numbers.map(function (one, at) { return at < 3 ? one * 255 : one; }); }
    if (!/^(rgb|color\(srgb)/.test(text) || numbers.length < 3) { return null; }
    return { r: numbers[0], g: numbers[1], b: numbers[2], a: numbers.length > 3 ? numbers[3] : 1 };
  }

  function over(top, under) {
    function mixed(name) { return top[name] * top.a + under[name] * (1 - top.a); }
    return { r: mixed("r"), g: mixed("g"), b: mixed("b"), a: 1 };
  }

  function light(one) {
    function part(value) { value /= 255; return value <= 0.04045 ? value / 12.92 : Math.pow((value + 0.055) / 1.055, 2.4); }
    return 0.2126 * part(one.r) + 0.7152 * part(one.g) + 0.0722 * part(one.b);
  }

  function ratio(one, other) {
    var a = light(one), b = light(other);
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  }

  function hex(one) { return "#" + ["r", "g", "b"].map(function (name) { return ("0" + Math.round(one[name]).toString(16)).slice(-2); }).join(""); }

  // What lies behind an element: the grounds of all it stands in, and in a drawing the filled boxes drawn before it.
  function ground(element) {
    var layers = [], svg = element.ownerSVGElement, box = element.getBoundingClientRect();
    above(element).forEach(function (one) {
      if (one instanceof HTMLElement || one === svg) { layers.push(colour(getComputedStyle(one).backgroundColor)); }
      for (var before = svg && one !== svg && svg.contains(one) ? one.previousElementSibling : null; before; before = before.previousElementSibling) {
        if (before.tagName !== "rect" || !shown(before)) { continue; }
        var its = before.getBoundingClientRect(), style = getComputedStyle(before), fill = colour(style.fill);
        var holds = its.left <= box.left + 2 && its.right >= box.right - 2 && its.top <= box.top + 2 && its.bottom >= box.bottom - 2;
        if (fill && holds) { layers.push(Object.assign(fill, { a: fill.a * Number(style.fillOpacity) * opacity(before) })); }
      }
    });
    var darkens = getComputedStyle(document.documentElement).colorScheme.indexOf("dark") >= 0 || matchMedia("(forced-colors: active)").matches;
    var paper = darkens && matchMedia("(prefers-color-scheme: dark)").matches && !matchMedia("print").matches;
    var base = paper ? { r: 18, g: 18, b: 18, a: 1 } : { r: 255, g: 255, b: 255, a: 1 };
    return layers.filter(Boolean).reverse().reduce(function (under, top) { return over(top, under); }, base);
  }

  function once(list) { return Array.from(new Set(list)); }

  function plots() { return Array.prototype.slice.call(document.querySelectorAll(".plot")).filter(shown); }

  // The opaque, positioned part that this stands in and the other does not: a menu or a head that lies over the rest.
  function lifted(element, other) {
    return above(element).some(function (one) {
      if (one.contains(other)) { return false; }
      var style = getComputedStyle(one), back = colour(style.backgroundColor);
      return style.position !== "static" && style.position !== "relative" && back && back.a === 1;
    });
  }

  // The part of a box that its scrolling ancestors let be seen; null: nothing.
  function seen(one, cuts) {
    var element = one.element;
    if (!cuts.has(element)) {
      cuts.set(element, above(element.parentElement || element).concat([element]).filter(function (up) {
        return up instanceof HTMLElement && up !== document.body && up !== document.documentElement && getComputedStyle(up).overflowX !== "visible";
      }));
    }
    var box = { left: one.left, right: one.right, top: one.top, bottom: one.bottom };
    cuts.get(element).forEach(function (up) {
      var its = up.getBoundingClientRect(), x = window.scrollX, y = window.scrollY;
      box.left = Math.max(box.left, its.left + x); box.right = Math.min(box.right, its.right + x);
      box.top = Math.max(box.top, its.top + y); box.bottom = Math.min(box.bottom, its.bottom + y);
    });
    return box.right - box.left > SLACK && box.bottom - box.top > SLACK ? box : null;
  }

  function overlaps(root) {
    var cuts = new Map(), found = [];
    var boxes = texts(root).map(function (one) { var box = seen(one, cuts); return box && Object.assign(one, box); }).filter(Boolean);
    boxes.sort(function (a, b) { return a.top - b.top; });
    boxes.forEach(function (one, at) {
      for (var next = at + 1; next < boxes.length && boxes[next].top < one.bottom - 2 * SLACK; next++) {
        var other = boxes[next];
        var wide = Math.min(one.right, other.right) - Math.max(one.left, other.left), high = Math.min(one.bottom, other.bottom) - other.top;
        if (wide <= 2 * SLACK || high <= 2 * SLACK || one.node === other.node) { continue; }
        if (one.element.tagName === "SUP" || other.element.tagName === "SUP") { continue; }
        if (lifted(one.element, other.element) || lifted(other.element, one.element)) { continue; }
        found.push(where(one.element) + ": \"" + one.text + "\" and \"" + other.text + "\" share " + Math.round(wide) + " x " + Math.round(high) + " pixels");
      }
    });
    return once(found.concat(touching(root)));
  }

  // Titles of a plot's axes without room between them read as one.
  function touching(root) {
    return (root ? [root] : plots()).flatMap(function (plot) {
      var all = Array.from(plot.querySelectorAll("text[class*=title]")).filter(shown);
      return all.flatMap(function (one, at) {
        var box = one.getBoundingClientRect();
        return all.slice(at + 1).filter(function (other) {
          var its = other.getBoundingClientRect();
          return Math.max(box.left, its.left) - Math.min(box.right, its.right) < 2 * SLACK && Math.max(box.top, its.top) - Math.min(box.bottom, its.bottom) < 2 * SLACK;
        }).map(function (other) { return where(one) + ": the titles \"" + words(one.textContent) + "\" and \"" + words(other.textContent) + "\" touch"; });
      });
    });
  }

  // Text that its frame cuts off, where nothing scrolls; and whatever makes the page wider than the screen.
  function cuts() {
    var found = [], wide = document.scrollingElement.scrollWidth - document.documentElement.clientWidth;
    if (wide > 0) {
      var widest = Array.prototype.slice.call(document.querySelectorAll("body *")).filter(shown).map(function (one) {
        return [one.getBoundingClientRect().right + window.scrollX, one];
      }).sort(function (a, b) { return b[0] - a[0]; })[0];
      found.push("the page is " + wide + " pixels wider than the screen: " + where(widest[1]) + " " + widest[1].tagName.toLowerCase() + "." + widest[1].getAttribute("class"));
    }
    texts().forEach(function (one) {
      var x = window.scrollX, y = window.scrollY;
      var svg = one.element.ownerSVGElement;
      if (one.left < -SLACK && one.right > SLACK) { found.push(where(one.element) + ": \"" + one.text + "\" begins left of the page"); }
      var scrolls = false;
      above(svg || one.element).forEach(function (up) {
        var style = getComputedStyle(up), its = up.getBoundingClientRect();
        if (/auto|scroll/.test(style.overflowX + style.overflowY)) { scrolls = true; }
        var clips = up === svg || /hidden|clip/.test(style.overflowX + style.overflowY);
        if (scrolls || !clips || up === document.body || up === document.documentElement) { return; }
        var lost = Math.max(its.left + x - one.left, one.right - its.right - x, its.top + y - one.top, one.bottom - its.bottom - y);
        if (lost > 2 * SLACK) { found.push(where(one.element) + ": \"" + one.text + "\" is cut by " + Math.round(lost) + " pixels"); }
      });
    });
    return once(found);
  }

  // Text 4.5 : 1 on its ground, 3 : 1 where it is large; what has no letters is no text.
  function paleText() {
    var looked = new Map(), found = [];
    texts().forEach(function (one) {
      var element = one.element;
      if (looked.has(element) || element.closest(":disabled, [aria-disabled=true]")) { return; }
      looked.set(element, true);
      var style = getComputedStyle(element), ink = colour(element.ownerSVGElement ? style.fill : style.color), under = ground(element);
      if (!ink) { return; }
      ink.a *= opacity(element) * (element.ownerSVGElement ? Number(style.fillOpacity) : 1);
      var size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      var has = ratio(over(ink, under), under);
      if (has < (large ? 3 : 4.5) - 0.005) { found.push(where(element) + ": \"" + one.text + "\" is " + has.toFixed(1) + " : 1, " + hex(over(ink, under)) + " on " + hex(under)); }
    });
    return once(found);
  }

  var DRAWN = ".plot svg path, .plot svg line, .plot svg circle, .plot svg polyline, .plot svg rect";
  var GRID = "defs, clipPath, [class*=grid], [class*=zeroline], .bg, .bglayer, .modebar, .drag, .draglayer, [class*=axislayer], [class*=lines-above], [class*=lines-below], [class*=divider], .legendtoggle, .js-fill, .fills, .rangeslider-container, .rangeslider-bg";

  // Lines and marks 3 : 1 on the ground, by their outline or by what fills them.
  function paleMarks() {
    var found = [];
    Array.prototype.slice.call(document.querySelectorAll(DRAWN)).forEach(function (one) {
      if (!shown(one) || one.closest(GRID) || one.matches(".scrollbar, rect.bg")) { return; }
      var box = one.getBoundingClientRect(), style = getComputedStyle(one), whole = opacity(one);
      if (box.width + box.height < 1 || /url/.test(style.fill)) { return; }
      var inks = [];
      if (colour(style.stroke) && parseFloat(style.strokeWidth) > 0) { inks.push([colour(style.stroke), Number(style.strokeOpacity)]); }
      if (colour(style.fill)) { inks.push([colour(style.fill), Number(style.fillOpacity)]); }
      inks = inks.filter(function (ink) { return ink[0].a * ink[1] > 0; });
      if (!inks.length || whole === 0) { return; }
      var under = ground(one), best = Math.max.apply(null, inks.map(function (ink) {
        return ratio(over(Object.assign({}, ink[0], { a: ink[0].a * ink[1] * whole }), under), under);
      }));
      var band = inks.every(function (ink) { return ink[0].a * ink[1] * whole < 0.35; }) && box.width > 20;
      if (best < 2.995 && !band) {
        var ink = Object.assign({}, inks[0][0], { a: inks[0][0].a * inks[0][1] * whole });
        found.push(where(one) + ": a " + (box.width > 20 ? "line" : "mark") + " is " + best.toFixed(1) + " : 1, " + hex(over(ink, under)) + " on " + hex(under));
      }
    });
    return once(found);
  }

  // Each plot has data that can be seen, or says why not; each axis has two numbers, or names.
  function axes() {
    var found = [];
    plots().forEach(function (plot) {
      var layout = plot._fullLayout;
      if (!plot.querySelector("svg, canvas")) { found.push("#" + plot.id + ": nothing is drawn"); return; }
      if (!layout) { return; }
      var numbers = {};
      plot.querySelectorAll("g.xtick, g[class*='tick']").forEach(function (tick) {
        var kind = (/(^|\s)([xy]\d*)tick(\s|$)/.exec(tick.getAttribute("class")) || [])[2];
        if (kind && tick.textContent.trim() && shown(tick)) { (numbers[kind] = numbers[kind] || new Set()).add(tick.textContent.trim()); }
      });
      Object.keys(layout).filter(function (name) { return /^[xy]axis\d*$/.test(name) && layout[name].visible !== false && layout[name].range; }).forEach(function (name) {
        var kind = name[0] + name.slice(5), has = numbers[kind] ? numbers[kind].size : 0, axis = layout[name];
        var shared = axis.matches && axis.showticklabels === false ? (numbers[axis.matches] || new Set()).size : 0;
        var named = kind[0] === "y" && has && Array.from(numbers[kind]).every(function (text) { return /[a-z]{2}/i.test(text); });
        if (Math.max(has, shared) < (named || axis.type === "category" || axis.type === "multicategory" ? 1 : 2)) {
          found.push("#" + plot.id + ": its " + kind + " axis (" + words((axis.title && axis.title.text) || "no title") + ") has " + (has ? "one number" : "no number"));
        }
      });
      var frame = plot.getBoundingClientRect();
      var drawn = Array.prototype.slice.call(plot.querySelectorAll(".scatterlayer .point, .scatterlayer .js-line, .barlayer .point path, .heatmaplayer image")).filter(function (one) {
        var box = one.getBoundingClientRect();
        return box.width + box.height > 1 && box.right > frame.left && box.left < frame.right && box.bottom > frame.top && box.top < frame.bottom;
      });
      var told = texts(plot).some(function (one) { return one.element.closest(".annotation"); });
      if (!drawn.length && !told) { found.push("#" + plot.id + ": no data is drawn, and nothing says why"); }
    });
    return once(found);
  }

  var CONTROLS = "select, input, button, textarea, summary, a[href], [role=button], [role=link], [role=checkbox], [tabindex='0'], .modebar-btn";

  function name(element) {
    var text = element.getAttribute("aria-label") || element.getAttribute("data-title") || element.textContent || element.value || "";
    if (element.labels && element.labels.length) { text = element.labels[0].textContent; }
    return where(element) + " " + element.tagName.toLowerCase() + " \"" + words(text) + "\"";
  }

  function controls() {
    return Array.prototype.slice.call(document.querySelectorAll(CONTROLS)).filter(function (one) {
      var box = one.getBoundingClientRect();
      var radio = one.type === "radio" && !one.checked && document.querySelector("input[type=radio][name='" + CSS.escape(one.name) + "']:checked");
      return shown(one) && box.width > 0 && !one.disabled && one.type !== "hidden" && !radio;
    });
  }

  function target(one) { return one.matches("input") && one.closest("label") || one; }

  // What a finger must hit has 44 pixels each way; lines of a legend in a drawing are not looked at.
  function targets() {
    return once(controls().filter(shown).map(target)).map(function (one) { return [one, one.getBoundingClientRect()]; }).filter(function (pair) {
      return Math.min(pair[1].width, pair[1].height) < 43.5 && !pair[0].matches(".skip, .wide");
    }).map(function (pair) {
      return name(pair[0]) + " is " + Math.round(pair[1].width) + " x " + Math.round(pair[1].height) + " pixels";
    });
  }

  function choices() {
    return Array.prototype.slice.call(document.querySelectorAll("main select, main input")).map(function (one) {
      var chooses = one.tagName === "SELECT", label = one.labels && one.labels.length ? one.labels[0] : one;
      var values = Array.from(one.options || []).map(function (option) { return option.value; });
      return { kind: chooses ? "select" : one.type, now: chooses ? one.value : one.checked, name: one.id || words(label.textContent),
        values: values.filter(function (value) { return value !== one.value; }) };
    });
  }

  // Of the axes of each plot.
  function titles() {
    return plots().flatMap(function (plot) {
      return Array.from(plot.querySelectorAll(".xtitle, .ytitle, .y2title")).map(function (one) { return ["#" + plot.id, one.textContent]; });
    });
  }

  // What has the focus: whether that can be seen, and whether it is in sight.
  function focused() {
    var one = document.activeElement;
    if (!one || one === document.body || one === document.documentElement) { return null; }
    var style = getComputedStyle(one), box = one.getBoundingClientRect(), wrong = [];
    var ring = (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1) || style.boxShadow !== "none";
    if (opacity(one) < WATERMARK) { wrong.push(name(one) + ": focused, and not to be seen"); }
    if (!ring && !one.closest("svg")) { wrong.push(name(one) + ": its focus cannot be seen"); }
    var x = box.left + Math.min(box.width / 2, 12), y = box.top + Math.min(box.height / 2, 8), top = document.elementFromPoint(x, y);
    if (!top) { wrong.push(name(one) + ": focused out of sight"); }
    else if (!one.contains(top) && !top.contains(one) && !(one.labels && Array.prototype.some.call(one.labels, function (label) { return label.contains(top); }))) {
      wrong.push(name(one) + ": focused behind " + name(top));
    }
    return { number: controls().indexOf(one), name: name(one), wrong: wrong };
  }

  // The same in two looks: nothing moves any more.
  function still() {
    var boxes = texts().reduce(function (sum, one) { return sum + one.left * 3 + one.top * 7 + one.right + one.bottom; }, 0);
    return Math.round(boxes) + " " + document.querySelectorAll("svg *").length;
  }

  // still() in the next frame: changes of ground and of width have been told to the page by then.
  function frame() { return new Promise(function (done) { requestAnimationFrame(function () { done(still()); }); }); }

  window.eyes = { texts: texts, overlaps: overlaps, cuts: cuts, paleText: paleText, paleMarks: paleMarks, axes: axes, controls: controls, name: name, focused: focused,
    choices: choices, targets: targets, titles: titles, frame: frame, plots: plots };
})();
