"""One look for every figure, and one way to save it: Vega-Lite with its data inside, SVG, data table.

`script_bundle` draws the same specifications in a browser that is offline, and `png` as a picture of pixels, which no
job does: it takes as long as the rest, and what it gives can be drawn from the specification at any time.

Colours are those of Okabe and Ito (2008), which readers with any colour vision can tell apart.
"""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import vl_convert
from PIL import Image

from pipeline.errors import SandglassError
from pipeline.kit import drawings
from pipeline.store import tables

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILLION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY = "#8C8C8C"
PALETTE = [BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK, YELLOW]

Figure = tuple[alt.TopLevelMixin, pl.DataFrame]  # what a function of a figure returns: the chart, its data

UNIT = [0, 0.2, 0.4, 0.6, 0.8, 1]  # ticks of shares
PNG_SCALE = 2
DIGITS = 6  # significant digits of the numbers in a specification: far more than can be seen, or read in a tooltip
BOX = "\ue000"  # a letter of private use, which is drawn as the box of letters that a font lacks

# Liberation Sans comes with vl-convert: letters are the same on every machine (`_set_up_fonts`).
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
SIZE = 13  # pixels; figures are at most 660 wide, so letters stay readable in a text column
INK, FAINT = "#222222", "#E5E5E5"
CONFIG: dict[str, Any] = {
    "background": "white",
    "font": FONT,
    "range": {"category": PALETTE},
    "view": {"stroke": None},
    "mark": {"tooltip": True},
    "axis": {
        "labelFontSize": SIZE,
        "titleFontSize": SIZE,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "labelColor": INK,
        "titleColor": INK,
        "domainColor": INK,
        "tickColor": INK,
        "gridColor": FAINT,
        "labelFlush": False,
    },
    "legend": {
        "labelFontSize": SIZE,
        "titleFontSize": SIZE,
        "titleFontWeight": "normal",
        "labelLimit": 400,
        "symbolSize": 90,
    },
    "header": {"labelFontSize": SIZE, "titleFontSize": SIZE},
    "title": {
        "anchor": "start",
        "fontSize": 15,
        "subtitleFontSize": SIZE,
        "subtitleColor": INK,
        "subtitlePadding": 6,
        "offset": 12,
    },
    "text": {"fontSize": SIZE},
}


def number(value: float | None, digits: int = 2) -> str:
    """Return ``value`` as figures print it; an en dash where it is not defined."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def empty(title: str, why: str) -> Figure:
    """Return a figure that says why there is nothing to show."""
    data = pl.DataFrame({"why": [why]})
    chart: Any = alt.Chart(data).mark_text(align="left", color=INK).encode(text="why:N", x=alt.value(0))
    return chart.properties(width=600, height=40, title=title, description=f"{title}: {why}."), data


class _Encoding(alt.FacetedEncoding):
    """Channels that copies of a chart share."""

    _class_is_valid_at_instantiation = False  # it is checked as a part of its chart

    def __deepcopy__(self, memo: object = None) -> _Encoding:
        return self


class _Mark(alt.MarkDef):
    """A mark that copies of a chart share."""

    def __deepcopy__(self, memo: object = None) -> _Mark:
        return self


def shared(layer: Any) -> Any:
    """Return a layer whose channels and mark are not copied with it, and are not to be changed from here on.

    Altair copies each chart several times wherever charts are put together, in every panel, row and column. A channel
    has up to forty settings, most of which nobody makes, so that this was more than half of the time of a figure.
    """
    if not isinstance(layer, alt.Chart):
        return layer
    layer = layer.copy(deep=False)
    if isinstance(layer.encoding, alt.FacetedEncoding):
        layer.encoding = _Encoding(**layer.encoding._kwds)
    if isinstance(layer.mark, alt.MarkDef):
        layer.mark = _Mark(**layer.mark._kwds)
    return layer


def save(chart: alt.TopLevelMixin, data: pl.DataFrame, folder: Path, name: str) -> None:
    """Write ``<name>.vl.json`` (data inlined), ``.svg`` and ``.parquet`` (``data``) into ``folder``.

    The same chart and data give the same bytes.

    Raises SandglassError if Liberation Sans lacks a letter of its text: what stands there would be an empty box, or
    depend on the machine's fonts.
    """
    _set_up_fonts()
    folder.mkdir(parents=True, exist_ok=True)
    spec = specification(chart)
    text = json.dumps(spec, separators=(",", ":"), sort_keys=True, ensure_ascii=False, allow_nan=False)
    (folder / f"{name}.vl.json").write_text(text + "\n", encoding="utf-8")
    svg = drawings.finished(vl_convert.vegalite_to_svg(spec))
    written = "".join(re.findall(r">([^<>]+)<", svg))  # not what is read out alone
    if absent := "".join(
        letter for letter in sorted({*written}) if not letter.isascii() and _drawn(letter) == _drawn(BOX)
    ):
        raise SandglassError(f"figure {name}: Liberation Sans has no {' '.join(absent)}: say it in other letters")
    (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
    tables.store(data, folder / f"{name}.parquet")


def png(spec: dict[str, Any]) -> bytes:
    """Return the picture of a specification at twice its size in pixels; the same chart gives the same bytes."""
    _set_up_fonts()
    return _small(vl_convert.vegalite_to_png(spec, scale=PNG_SCALE))


@cache
def _set_up_fonts() -> None:
    """Have the renderer draw with the fonts that it brings, whatever this machine has: pixels would differ.

    It reads fontconfig once, and gives the machine's fonts precedence. So it is shown a folder without any (on
    Linux; elsewhere nothing is asked of fontconfig, and few machines have Liberation Sans).
    """
    before = os.environ.get("FONTCONFIG_FILE")
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "fonts.conf"
        config.write_text(f'<?xml version="1.0"?><fontconfig><dir>{folder}</dir></fontconfig>', encoding="utf-8")
        os.environ["FONTCONFIG_FILE"] = str(config)
        try:
            vl_convert.svg_to_png('<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>')
        finally:
            del os.environ["FONTCONFIG_FILE"]
            if before is not None:
                os.environ["FONTCONFIG_FILE"] = before


@cache
def _drawn(letter: str) -> bytes:
    """Return a letter as pixels."""
    text = f'<text x="2" y="20" font-family="{FONT.split(",")[0]}" font-size="16">{letter}</text>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="30" height="30">{text}</svg>'
    return bytes(vl_convert.svg_to_png(svg))


def _small(png: bytes) -> bytes:
    """Return the same pixels in a quarter of the bytes: the renderer hardly compresses, the background is opaque."""
    packed = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        image.convert("RGB").save(packed, "png", optimize=True, dpi=(72 * PNG_SCALE, 72 * PNG_SCALE))
    return packed.getvalue()


def script_bundle() -> str:
    """Return Vega, Vega-Lite and vega-embed as one script that defines ``vegaEmbed`` and needs no network."""
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def specification(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """Return the Vega-Lite specification of ``chart`` in the look of this module, all rows of its data inside."""
    with alt.data_transformers.enable("default", max_rows=None), alt.theme.enable("none"):
        spec = chart.to_dict()
    spec["datasets"] = {
        name: [{key: _shortened(value) for key, value in row.items()} for row in rows]
        for name, rows in spec.get("datasets", {}).items()
    }
    return spec | {"config": _merged(CONFIG, spec.get("config", {}))}


def _shortened(value: Any) -> Any:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return ``over`` on top of ``base``, section by section."""
    both = base | over
    for key in base.keys() & over.keys():
        if isinstance(base[key], dict) and isinstance(over[key], dict):
            both[key] = _merged(base[key], over[key])
    return both
