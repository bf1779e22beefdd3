"""What is stored of a drawing: the same picture, and text that has its width in whatever font."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
import vl_convert
from PIL import Image

from pipeline.kit import charts, drawings


def pixels(svg: str) -> np.ndarray:
    """The drawing as (height, width) grey levels."""
    charts._set_up_fonts()
    return np.asarray(Image.open(io.BytesIO(vl_convert.svg_to_png(svg))).convert("L"), int)


def drawn(text: str, weight: str = "normal") -> str:
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="900" height="60"><rect width="900" height="60" fill="white"/>'
        f'<text x="5" y="40" font-family="Liberation Sans" font-size="32px" font-weight="{weight}">{text}</text></svg>'
    )


def ink(text: str, weight: str) -> int:
    """How far it is from the first pixel with ink to the last."""
    columns = np.flatnonzero((pixels(drawn(text, weight)) < 128).any(axis=0))
    return int(columns[-1] - columns[0])


@pytest.mark.parametrize(("weight", "bold"), [("normal", False), ("bold", True)])
def test_widths_are_those_of_the_font_that_figures_are_laid_out_in(weight: str, bold: bool) -> None:
    table = drawings.BOLD if bold else drawings.REGULAR
    letters = [letter for row in table.values() for letter in row]
    assert len(letters) == len(set(letters)) and set(map(chr, range(32, 127))) <= {*letters}
    between = ink("|" * 11, weight)  # bars keep letters from moving together
    for letter in letters:
        shown = {"&": "&amp;", "<": "&lt;", " ": "\u00a0"}.get(letter, letter)
        expected = 10 * (drawings.width(letter, 32, bold) or 0)
        assert abs(ink("|" + f"{shown}|" * 10, weight) - between - expected) < 4, letter
    assert drawings.width("a\u0416", 13, bold) is None  # a letter that the table lacks


def test_every_line_has_its_width() -> None:
    lines = 'font-size="10px"><tspan>first</tspan><tspan x="0" dy="15">second &amp; last</tspan>'
    svg = f'<svg><text font-size="10px" font-weight="bold">AV</text><text {lines}</text><text>no size</text></svg>'
    drawing = drawings.finished(svg)
    measured = {
        drawings.width(text, 10, bold) for text, bold in [("AV", True), ("first", False), ("second & last", False)]
    }
    assert {*map(float, re.findall(r'textLength="([0-9.]+)"', drawing))} == {round(each or 0, 1) for each in measured}
    assert re.sub(r' (textLength|lengthAdjust)="[^"]*"', "", drawing) == svg
    assert drawings.finished("<svg><text>a</text></svg>") == "<svg><text>a</text></svg>"


def test_what_is_left_out_is_not_seen() -> None:
    marks = (
        '<path class="background" aria-hidden="true" d="M0,0h0v0h0Z" pointer-events="none"/>'
        '<path class="foreground" d="" display="none"/><path d="M5,5h20v20h-20Z" display="none" fill="red"/>'
        '<g><g class="a"><path d="M0,0" display="none"/></g></g>'
        '<path aria-label="a: 1" role="graphics-symbol" aria-roledescription="rect mark" d="M30.123456,5h20v20h-20Z"'
        ' fill="rgb(0, 114, 178)" opacity="1"/>'
        '<circle r="5" cx="80" cy="20" fill="green" opacity="0.5"/>'
        '<circle clip-path="url(#one)" r="15" cx="60" cy="20" fill="red"/>'
        '<circle clip-path="url(#two)" r="15" cx="65" cy="20" fill="blue"/>'
        '<defs><clipPath id="one"><rect width="60" height="20"/></clipPath>'
        '<clipPath id="two"><rect width="60" height="20"/></clipPath></defs>'
    )
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="100" height="40">{marks}</svg>'
    slim = drawings.finished(svg)
    assert "display" not in slim and "<g" not in slim and "aria-label" not in slim and 'opacity="1"' not in slim
    assert slim.count("<clipPath") == 1 and slim.count("url(#one)") == 2 and "class" not in slim
    assert 'd="M30.12,5h20v20h-20Z" fill="#0072b2"' in slim and 'opacity="0.5"' in slim
    assert np.abs(pixels(svg) - pixels(slim)).max() <= 2
    assert drawings.slim(slim) == slim
