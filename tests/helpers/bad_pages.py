"""Small pages, each with one thing that is wrong."""

from __future__ import annotations

from typing import NamedTuple

READY = "<script>document.documentElement.dataset.ready = '1'</script>"
LINE = "<path d='M100,20L400,250' style='stroke:{};fill:none'/>"


def page(body: str) -> str:
    head = "<!doctype html><html lang='en'><title>x</title><body><main><h1>Figures</h1>"
    return f"{head}{body}</main>{READY}"


def plot(*texts: tuple[int, int, str], drawn: str = "", style: str = "") -> str:
    """A plot of 500 x 300 pixels with these texts in it: their places and words."""
    words = "".join(
        f"<text x='{x}' y='{y}' style='font-size:1em;fill:currentColor'>{text}</text>" for x, y, text in texts
    )
    named = "class='plot' id='plot-x' role='img' aria-label='A plot' aria-description='Of figures'"
    return f"<div {named}><svg width='500' height='300' style='{style}'>{words}{drawn}</svg></div>"


class Bad(NamedTuple):
    """check: the look that tells it; words: of the sentence that tells it."""

    check: str
    body: str
    words: str


BAD = {
    "overlapping labels": Bad(
        "layout", plot((9, 30, "10 Mpps"), (25, 34, "20 Mpps")), '#plot-x: "10 Mpps" and "20 Mpps" share'
    ),
    "a line under another": Bad(
        "layout", "<p>one two</p><p style='margin-top:-30px'>three</p>", '"one two" and "three" share'
    ),
    "axis titles that touch": Bad(
        "layout",
        plot(drawn="<text class='ytitle' x='20' y='40'>rate</text><text class='y2title' x='20' y='58'>failed</text>"),
        'the titles "rate" and "failed" touch',
    ),
    "a page too wide": Bad(
        "layout", "<table style='width:3000px'><caption>c</caption><tr><td>x</table>", "wider than the screen"
    ),
    "text cut off": Bad(
        "layout", "<p style='width:40px;overflow:hidden;white-space:nowrap'>a long name</p>", '"a long name" is cut by'
    ),
    "a label outside its drawing": Bad("layout", plot((480, 20, "10 Mpps")), '"10 Mpps" is cut by'),
    "pale text": Bad("light", "<p style='color:#aaa'>figures</p>", '"figures" is 2.3 : 1, #aaaaaa on #ffffff'),
    "faded text": Bad("light", "<p style='opacity:.5;color:#333'>figures</p>", '"figures" is 2.8 : 1'),
    "a pale line": Bad("light", plot(drawn=LINE.format("#e69f00")), "a line is 2.3 : 1, #e69f00 on #ffffff"),
    "dark text on a dark ground": Bad("dark", "<p style='background:#14171a;color:#3a4149'>figures</p>", " is 1.7 : 1"),
    "pale text in the reader's own colours": Bad(
        "forced", "<p style='forced-color-adjust:none;color:#333'>figures</p>", '"figures" is '
    ),
    "a link that a finger misses": Bad("finger", "<p><a href='#x'>figures</a></p>", 'a "figures" is '),
    "an empty plot": Bad("axes", "<div class='plot' id='plot-x'></div>", "#plot-x: nothing is drawn"),
    "a control that Tab cannot reach": Bad(
        "keyboard", "<button tabindex='-1'>a</button><button>b</button>", 'Tab does not reach page button "a"'
    ),
    "a focus that cannot be seen": Bad(
        "keyboard", "<button style='outline:none'>a</button>", 'button "a": its focus cannot be seen'
    ),
    "a focus behind a bar": Bad(
        "keyboard",
        "<button>a</button><div style='position:fixed;inset:0;background:#fff'>bar</div>",
        'button "a": focused behind page div "bar"',
    ),
    "a focus in a faded part": Bad(
        "keyboard", "<div style='opacity:0'><button>a</button></div>", 'button "a": focused, and not to be seen'
    ),
    "a trap": Bad(
        "keyboard",
        "<button>a</button><button id='trap'>b</button><button>c</button>"
        "<script>document.getElementById('trap').onkeydown = function (event) { event.preventDefault(); }</script>",
        "Tab does not get out of the page",
    ),
    "a fold that stays shut": Bad(
        "keyboard",
        "<details id='fold'><summary>more</summary></details><script>['keydown', 'keyup'].forEach(function (one) {"
        "document.getElementById('fold').addEventListener(one, function (key) { key.preventDefault(); }); })</script>",
        "does not open or close",
    ),
    "a heading left out": Bad("axe", "<h3>deep</h3>", "heading-order (best practice) at h3"),
    "a table without a name": Bad("reader", "<table><tr><th>a<tr><td>1</table>", "neither caption nor label"),
    "a plot without a description": Bad(
        "reader", "<div class='plot' role='img' aria-label='A plot'>x</div>", "'A plot' has no description"
    ),
    "a plot that eats swipes": Bad(
        "touch",
        plot((9, 9, "1"), style="touch-action:none") + "<p style='height:3000px'>far</p>",
        "a swipe over #plot-x does not scroll the page",
    ),
    "text that does not grow": Bad(
        "larger", "<style>body { font-size: 16px }</style><p>figures</p>", "text of the page stays at 16 px"
    ),
    "a heading at a sheet's end": Bad(
        "paper",
        "<h2>Rates</h2><p style='break-before:page'>5 Mpps</p>",
        "sheet 1 ends with 'Rates'",
    ),
    "pale print": Bad("paper", "<p style='color:#ccc'>figures</p>", "'figures' is printed pale"),
    "a dark sheet": Bad(
        "paper", "<style>body { background: #000; color: #fff; height: 900px }</style>", "the ground of sheet 1 is not"
    ),
    "a warning that is not printed": Bad(
        "paper", "<p>x</p><p class='doubt' hidden>lost frames</p>", "the warning 'lost frames' is not printed"
    ),
    "words printed over others": Bad(
        "paper", "<p>one two</p><p style='margin-top:-36px'>three</p>", "are printed over each other"
    ),
    "words in the console": Bad("silent", "<script>console.log('here')</script>", "the console said: here"),
    "a request": Bad("silent", "<img src='other.png' alt='x'>", "other.png"),
}
"""Defect -> a page that has it."""
