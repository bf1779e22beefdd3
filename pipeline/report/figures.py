"""A figure as a page shows it: an image for everyone, and the same chart as a script that is loaded on demand."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import SandglassError
from pipeline.kit import charts
from pipeline.report import sources
from pipeline.report.results import Study
from pipeline.report.wording import first_paragraph
from pipeline.store.paths import figure_path

# Of no use in an image, where nothing inside is read out, and more than half of a large one.
_SIZE = re.compile(r'<svg[^>]* width="([0-9.]+)" height="([0-9.]+)"')


@dataclass(frozen=True)
class Figure:
    """The words and the size (pixels) of a figure; ``base`` is the stem of its files on the site."""

    study: Study
    name: str
    title: str
    caption: str
    description: str
    width: float
    height: float
    base: str

    def alt(self, claims: list[str]) -> str:
        """Return what the image shows, and the verdicts of the claims that the text around it speaks of."""
        verdicts = [f"claim {claim} {self.study.lines[claim].verdict}" for claim in claims]
        return f"{self.description} Verdicts: {'; '.join(verdicts)}." if verdicts else self.description


def load(study: Study, name: str, source: sources.Source | None) -> Figure:
    """Return the figure ``name`` of ``study`` from its files; the docstring of ``source`` is its caption."""
    chart, image = _chart(study, name), _image(study, name)
    title = chart.get("title", "")
    words = title.get("text", "") if isinstance(title, dict) else title
    caption = first_paragraph(source.doc) if source else ""
    size = _SIZE.search(image)
    width, height = (float(size[1]), float(size[2])) if size else (600.0, 400.0)
    description = chart.get("description") or " ".join(filter(None, [_line(words), caption])) or name
    return Figure(study, name, _line(words), caption, description, width, height, f"figures/{study.id}/{name}")


def files(study: Study, name: str) -> dict[str, bytes]:
    """Return, by name on the site, the figure's data, its image, and its specification as a script."""
    base = f"figures/{study.id}/{name}"
    contents = {f"{base}.{suffix}": _path(study, name, suffix).read_bytes() for suffix in ("parquet", "svg")}
    text = json.dumps(_chart(study, name), sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Read from disk, a page may load scripts but no JSON: pages draw the chart from it, and save the specification.
    contents[f"{base}.js"] = f"sandglass.chart({json.dumps(base)},{text});\n".encode()
    return contents


def picture(specification: Path, file: Path) -> None:
    """Draw the figure whose specification is given as a PNG.

    Raises SandglassError if it is none, or the PNG cannot be written.
    """
    try:
        content = charts.png(json.loads(specification.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise SandglassError(f"{specification} is no specification of a figure: {reason}") from None
    try:
        file.write_bytes(content)
    except OSError as error:
        raise SandglassError(f"{file}: cannot be written: {error.strerror}") from None


def _path(study: Study, name: str, suffix: str) -> Path:
    return figure_path(study.id, study.figures[name], name, suffix)


def _chart(study: Study, name: str) -> dict[str, Any]:
    chart: dict[str, Any] = json.loads(_path(study, name, "vl.json").read_text(encoding="utf-8"))
    return chart


def _image(study: Study, name: str) -> str:
    return _path(study, name, "svg").read_text(encoding="utf-8")


def _line(words: Any) -> str:
    """Return a title of Vega-Lite, which is a text or its lines, as one line."""
    return " ".join(words) if isinstance(words, list) else str(words)
