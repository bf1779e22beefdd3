"""The report's page: an image for everyone, the same chart where scripts run, nothing from elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import altair as alt
import polars as pl
import pytest

from pipeline import charts
from pipeline.steps import report

NASTY = "ends </script><b> & 'quotes' \" ρ"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a report with one figure."""
    monkeypatch.chdir(tmp_path)
    data = pl.DataFrame({"x": [1, 2], "label": [NASTY, "b"]})
    chart = alt.Chart(data, description=NASTY).mark_point().encode(x="x", y="label")
    charts.save(chart, data, Path("data/figures/study"), "fig")

    def study(job: Any, key: str, entry: Any) -> dict[str, Any]:
        figures = [report._figure(job, key, "fig")]
        nothing: dict[str, Any] = {"claims": [], "summary": [], "theory": []}
        return {"id": key, "title": "T", "source": "S", "figures": figures} | nothing

    monkeypatch.setattr(report, "_study", study)

    def out(path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    report.run(SimpleNamespace(studies={"study": None}, scale="quick", params_hash="abc", out=out))  # type: ignore[arg-type]
    return tmp_path / "data/report"


def test_the_page_shows_an_image_and_holds_the_same_chart(page: Path) -> None:
    text = (page / "index.html").read_text(encoding="utf-8")
    assert '<img src="figures/study/fig.svg" alt="ends &lt;/script&gt;' in text
    (inline,) = re.findall(r'<script type="application/json" class="specification">(.*?)</script>', text)
    saved = json.loads((page / "figures/study/fig.vl.json").read_text(encoding="utf-8"))
    assert json.loads(inline) == {key: value for key, value in saved.items() if key != "$schema"}
    assert json.loads(inline)["description"] == NASTY


def test_one_script_file_and_no_address_elsewhere(page: Path) -> None:
    text = (page / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'<script src="([^"]*)"', text) == ["vega.js"]
    assert "http" not in text
    script = (page / "vega.js").read_text(encoding="utf-8")
    assert "window.vegaEmbed=" in script.replace(" ", "")
    assert not re.search(
        r"^\s*(import|export)\b", script, re.MULTILINE
    )  # a plain script, so file:// may load it
    assert script == charts.script_bundle()
