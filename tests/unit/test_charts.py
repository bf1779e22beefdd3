"""How figures are saved: a specification that stands alone, letters that its font has, the pixels that were drawn."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
import vl_convert
from PIL import Image

from pipeline.kit import charts

pytestmark = pytest.mark.usefixtures("fonts")


def test_the_specification_stands_alone(tmp_path: Path) -> None:
    data = pl.DataFrame({"x": range(6000), "y": range(6000)})  # more rows than altair allows by default
    chart = alt.Chart(data).mark_point().encode(x="x", y="y").configure_axis(labelFontSize=20)
    spec = charts.specification(chart)
    assert len(next(iter(spec["datasets"].values()))) == 6000
    assert spec["config"]["axis"]["labelFontSize"] == 20  # a chart may differ from the common look
    assert spec["config"]["axis"]["titleFontSize"] == charts.SIZE
    charts.save(alt.Chart(data[:5]).mark_point().encode(x="x"), data[:5], tmp_path, "f")
    assert "url" not in json.loads((tmp_path / "f.vl.json").read_text()).get("data", {})
    assert pl.from_arrow(pq.read_table(tmp_path / "f.parquet")).equals(data[:5])  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("title", "expected"),
    [("β ‖x‖² ≤ √δ", ""), ("⟨x, y⟩", "figure f: Liberation Sans has no ⟨ ⟩: say it in other letters")],
)
def test_letters_that_the_font_lacks_are_refused_whatever_the_machine_has(
    title: str, expected: str, tmp_path: Path
) -> None:
    """In a new process, since the renderer asks for the machine's fonts once; DejaVu Sans has such brackets."""
    program = f"""
import altair as alt, pathlib, polars as pl
from pipeline.kit import charts
data = pl.DataFrame({{"x": [1]}})
charts.save(alt.Chart(data, title={title!r}).mark_point().encode(x="x"), data, pathlib.Path({str(tmp_path)!r}), "f")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (not expected) and expected in done.stderr
    assert (tmp_path / "f.svg").is_file() == (not expected)


def test_the_png_has_the_pixels_that_were_drawn() -> None:
    data = pl.DataFrame({"x": range(5)})
    spec = charts.specification(alt.Chart(data).mark_point(filled=True, opacity=0.5).encode(x="x", color="x:N"))
    drawn, packed = vl_convert.vegalite_to_png(spec, scale=charts.PNG_SCALE), charts.png(spec)
    with Image.open(io.BytesIO(drawn)) as image, Image.open(io.BytesIO(packed)) as kept:
        np.testing.assert_array_equal(np.asarray(image.convert("RGB")), np.asarray(kept))
    assert len(packed) < len(drawn) / 3 and charts.png(spec) == packed


def test_layers_that_copies_share_say_what_they_said() -> None:
    """In charts of charts, where each layer is copied at every level; the layer that was given stays as it was."""
    data = pl.DataFrame({"x": [1, 2], "y": [3, 4], "of": ["a", "b"]})
    base = alt.Chart(data).encode(x="x:Q", y=alt.Y("y:Q", title="errors"))
    layers = [base.mark_line(strokeWidth=2).encode(color="of:N"), base.mark_point(filled=True)]

    def put_together(layers: list[alt.Chart]) -> dict[str, Any]:
        panel = alt.layer(*layers).properties(title="panel")
        chart = alt.vconcat(alt.hconcat(panel, panel), panel).resolve_scale(color="independent")
        return charts.specification(chart)

    before = put_together(layers)
    lighter = [charts.shared(layer) for layer in layers]
    assert put_together(lighter) == before == put_together(layers)
    panel = alt.layer(*lighter)
    assert panel.layer[0].encoding is panel.copy().layer[0].encoding
    assert alt.layer(*layers).layer[0].encoding is not layers[0].encoding
    assert charts.shared(panel) is panel
