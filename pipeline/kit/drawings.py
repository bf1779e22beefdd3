"""What becomes of a drawing before it is stored: the same bytes each time, a third of the size, text that always fits.

The renderer writes an SVG for interaction in a page. As a picture it needs neither what is not drawn nor a spoken label
for every mark: the table beside the figure says the same, and axes and legends keep theirs.
"""

from __future__ import annotations

import re
from html import unescape

_RGB = re.compile(r"rgb\((\d+), ?(\d+), ?(\d+)\)")
_GEOMETRY = "d|transform|x|y|x1|x2|y1|y2|width|height|r|rx|ry|points"  # attributes that place a mark
_TAG = re.compile(r"<[^<>]+>")
# What the renderer says to style sheets and to readers of a page: an image has a text of its own.
_SPOKEN = re.compile(r' (?:class|role|aria-\w+)="[^"]*"| transform="translate\(0,0\)"')
_CLIP = re.compile(r'<clipPath id="([^"]+)">(.*?)</clipPath>')
_DEFAULT = re.compile(r' (?:opacity="1"|(?:fill|stroke)-opacity="1"|pointer-events="none"|font-weight="normal")')
_NOT_DRAWN = re.compile(r'<path[^<>]*(?: d=""| display="none"| d="M0,0h0v0h0Z")[^<>]*/>|<(g|text)(?: [^<>]*)?></\1>')
_TEXT = re.compile(r"(<text[^<>]*>)([^<>]*)(</text>|<tspan.*?</text>)")
_LINE = re.compile(r"<tspan([^<>]*)>([^<>]+)</tspan>")
_SIZE = re.compile(r'font-size="([0-9.]+)px"')

# Advance widths of Liberation Sans, which are those of Arial and Helvetica, in 2048ths of its size.
EM = 2048
REGULAR = {
    391: "'",
    455: "ijl‘’",
    532: "|",
    561: "∫",
    569: " !,./:;I[\\]ft",
    682: "()-`r²³“”¹·",
    684: "{}",
    717: "•",
    727: '"',
    747: "ⁿ",
    797: "*",
    809: "τ",
    819: "°",
    844: "‖",
    903: "ζ",
    913: "ε",
    917: "ξ",
    961: "^",
    1012: "∂",
    1024: "Jcksvxyzγκλν↑↓",
    1075: "χ",
    1124: "±√≤≥≠≈",
    1128: "Γ",
    1139: "#$0123456789?L_abdeghnopquäöüéηθ–",
    1140: "δ",
    1165: "ρ",
    1178: "β",
    1180: "μ",
    1184: "α",
    1196: "+<=>~×−",
    1251: "FTZß",
    1264: "σ",
    1266: "Σ",
    1328: "φ",
    1331: "Ξ",
    1366: "&ABEKPSVXY",
    1368: "ΔΛ",
    1413: "π",
    1460: "ψ∞∑",
    1479: "CDHNRUwΠ",
    1531: "Ω",
    1593: "GOQΘ",
    1599: "ω",
    1634: "Φ",
    1686: "∏",
    1706: "Mm",
    1708: "½¼",
    1711: "Ψ",
    1821: "%",
    1933: "W",
    2048: "→←…—",
    2079: "@",
}
BOLD = {
    487: "'",
    561: "∫",
    569: " ,./I\\ijl‘’",
    573: "|",
    682: "!()-:;[]`ft²³¹·",
    717: "•",
    797: "*r{}",
    811: "ⁿ",
    819: "°",
    912: "ξ",
    914: "τ",
    943: "ζ",
    971: '"',
    972: "ε",
    1012: "∂",
    1018: "‖",
    1024: "z↑↓“”",
    1107: "θ",
    1124: "±√≤≥≠≈",
    1139: "#$0123456789J_aceksvxyäéγλν–",
    1142: "κ",
    1179: "χ",
    1196: "+<=>^~×−",
    1229: "Σ",
    1231: "Γ",
    1242: "δ",
    1250: "β",
    1251: "?FLTZbdghnopqußöüη",
    1253: "μ",
    1259: "α",
    1267: "ρ",
    1318: "Ξ",
    1366: "EPSVXYΛ",
    1401: "σ",
    1460: "∞∑",
    1465: "φ",
    1472: "Δ",
    1479: "&ABCDHKNRUΠ",
    1543: "ψ",
    1568: "π",
    1593: "GOQwΘ",
    1642: "Ω",
    1657: "Ψ",
    1681: "Φ",
    1686: "∏",
    1706: "M",
    1708: "½¼",
    1730: "ω",
    1821: "%m",
    1933: "W",
    1997: "@",
    2048: "→←…—",
}
_WIDTHS = {
    bold: {letter: width for width, letters in table.items() for letter in letters}
    for bold, table in ((False, REGULAR), (True, BOLD))
}


def finished(svg: str) -> str:
    """Return the drawing as it is stored."""
    return _fitted(slim(_numbered(svg)))


def slim(svg: str) -> str:
    """Return the drawing without what is not drawn, what is the default, what only a page could use; coordinates to a
    hundredth of a pixel, colours without words, equal clips and the font named once."""
    svg = _TAG.sub(lambda tag: _DEFAULT.sub("", _SPOKEN.sub("", tag[0])), svg)
    svg = _RGB.sub(lambda rgb: "#{:02x}{:02x}{:02x}".format(*map(int, rgb.groups())), svg)
    svg = re.sub(rf' (?:{_GEOMETRY})="[^"]*"', lambda attribute: _rounded(attribute[0]), svg)
    count = 1
    while count:  # groups that hold nothing but such groups
        svg, count = _NOT_DRAWN.subn("", svg)
    clips: dict[str, str] = {}
    first = {name: clips.setdefault(shape, name) for name, shape in _CLIP.findall(svg)}
    svg = _CLIP.sub(lambda clip: clip[0] if first[clip[1]] == clip[1] else "", svg)
    svg = re.sub(r"url\(#(\w+)\)", lambda url: f"url(#{first.get(url[1], url[1])})", svg)
    if font := re.search(r' font-family="[^"]*"', svg):
        svg = svg.replace(font[0], "").replace("<svg", f"<svg{font[0]}", 1)
    return svg


def width(text: str, size: float, bold: bool) -> float | None:
    """Return how wide ``text`` is in Liberation Sans of ``size`` pixels, in pixels; None if a letter is not known."""
    widths = [_WIDTHS[bold].get(letter) for letter in text]
    known = [each for each in widths if each is not None]
    return sum(known) * size / EM if len(known) == len(widths) else None


def _numbered(svg: str) -> str:
    """Return ``svg`` with its gradients and clips counted from 0: the renderer counts all that it has drawn so far."""
    ids = dict.fromkeys(re.findall(r'id="((?:gradient|clip)_?)([0-9]+)"', svg))
    renamed = {f"{kind}{number}": f"{kind}{i}" for i, (kind, number) in enumerate(ids)}
    return re.sub(r"\b(?:gradient|clip)_?[0-9]+\b", lambda hit: renamed.get(hit[0], hit[0]), svg)


def _rounded(attribute: str) -> str:
    return re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), attribute)


def _fitted(svg: str) -> str:
    """Return the drawing with the width that every line of text has in the font that it was laid out for.

    So where that font is missing, and one that runs wider takes its place, nothing overlaps and nothing is cut off.
    """

    def fit(match: re.Match[str]) -> str:
        opening, line, rest = match.groups()
        size, bold = _SIZE.search(opening), 'font-weight="bold"' in opening
        if not size:
            return match[0]

        def length(text: str) -> str:
            pixels = width(unescape(text), float(size[1]), bold) if text.strip() else None
            return f' textLength="{pixels:.1f}" lengthAdjust="spacingAndGlyphs"' if pixels else ""

        if rest == "</text>":
            return f"{opening[:-1]}{length(line)}>{line}{rest}"
        first = f"<tspan>{line}</tspan>" if line else ""
        return opening + _LINE.sub(lambda row: f"<tspan{row[1]}{length(row[2])}>{row[2]}</tspan>", first + rest)

    return _TEXT.sub(fit, svg)
