"""A figure as a page shows it: an image for everyone, and the same chart as a script that is loaded on demand."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs

from pipeline.errors import SandglassError
from pipeline.kit import charts, drawings
from pipeline.references.reading import Reference
from pipeline.references.record import kept_path
from pipeline.report import sources
from pipeline.report.results import Study
from pipeline.report.wording import first_paragraph
from pipeline.store.paths import figure_path
from schemas.claims import SCALES

_SIZE = re.compile(r'<svg[^>]* width="([0-9.]+)" height="([0-9.]+)"')
_MEASURED = re.compile(r"\d+\.\d+|\d+ of \d+|^\d+$")


@dataclass(frozen=True)
class Figure:
    """The words and the size (pixels) of a figure; ``base`` is the stem of its files on the site.

    ``reference`` is the set whose results it shows, None if those of this build.
    """

    study: Study
    name: str
    title: str
    caption: str
    description: str
    width: float
    height: float
    base: str
    data: Path
    reference: Reference | None

    def alt(self, claims: list[str]) -> str:
        """Return what the image shows, and the verdicts of the claims that the text around it speaks of."""
        verdicts = [f"claim {claim} {self.study.lines[claim].verdict}" for claim in claims]
        return f"{self.description} Verdicts: {'; '.join(verdicts)}." if verdicts else self.description


def load(study: Study, name: str, source: sources.Source | None, reference: Reference | None = None) -> Figure:
    """Return the figure ``name`` of ``study`` from its files, or from those of a reference set.

    The docstring of ``source`` is its caption.
    """
    chart, image = _chart(study, name, reference), _path(study, name, "svg", reference).read_text(encoding="utf-8")
    title = chart.get("title", "")
    words = title.get("text", "") if isinstance(title, dict) else title
    caption = first_paragraph(source.doc) if source else ""
    size = _SIZE.search(image)
    width, height = (float(size[1]), float(size[2])) if size else (600.0, 400.0)
    description = chart.get("description") or " ".join(filter(None, [_line(words), caption])) or name
    data = _path(study, name, "parquet", reference)
    base = _base(study, name, reference)
    return Figure(study, name, _line(words), caption, description, width, height, base, data, reference)


def larger(study: Study, name: str, scale: str) -> Reference | None:
    """Return the reference set above ``scale`` whose figure is shown beside that of this build.

    Sets that show all that this build's figure tells apart come first, then those that lack the least: one that was
    made for a part of the study would show that part alone. Of these the largest scale counts, and of several sets the
    first, which is that of the study's own name if there is one, or else one that shows all that this shows, of more
    models. None if there is none, or its figure is the one of this build: some show what no scale changes.
    """
    above = SCALES[SCALES.index(scale) + 1 :]
    sets = [each for each in study.references if each.scale in above and each.has(_path(study, name, "svg"))]
    own = _own_words(study, name) if sets else set()
    missing = [len(own - _words(_data(study, name, each))) for each in sets]
    sets = [each for each, count in zip(sets, missing, strict=True) if count == min(missing)]
    largest = max((each.scale for each in sets), key=above.index, default=None)
    sets = [each for each in sets if each.scale == largest]
    found = _fullest(study, name, sets) if len(sets) > 1 else next(iter(sets), None)
    return None if found and _is_own(study, name, found) else found


def shows_all(study: Study, name: str, reference: Reference) -> bool:
    """Return whether the figure of a set tells apart all that the figure of this build does."""
    return _own_words(study, name) <= _words(_data(study, name, reference))


def _own_words(study: Study, name: str) -> set[str]:
    return _words(pl.read_parquet(_path(study, name, "parquet")))


def _fullest(study: Study, name: str, sets: list[Reference]) -> Reference:
    data = [_data(study, name, each) for each in sets]
    whole = [i for i, frame in enumerate(data) if _words(data[0]) <= _words(frame)]
    return sets[max(whole, key=lambda i: _models(data[i]))]


def _data(study: Study, name: str, reference: Reference) -> pl.DataFrame:
    return pl.read_parquet(_path(study, name, "parquet", reference))


def _words(data: pl.DataFrame) -> set[str]:
    """Return all words in the data of a figure, but for those of their making and why there is nothing to draw: what
    it tells apart. Of texts with a measured number in them the number is left out."""
    told = data.select(cs.string() - cs.by_name("scale", "params_hash", "why", require_all=False))
    return {_MEASURED.sub("", word) for column in told for word in column.unique().drop_nulls()}


def _models(data: pl.DataFrame) -> int:
    """Return how many models a figure shows, as far as its data say: they are numbered, or counted in ``n``."""
    if numbered := [name for name in ("replica", "model") if name in data.columns]:
        return data[numbered[0]].n_unique()
    return int(data.select(pl.col("n").max()).item() or 0) if "n" in data.columns else 0


def _is_own(study: Study, name: str, reference: Reference) -> bool:
    pairs = [(_path(study, name, suffix), _path(study, name, suffix, reference)) for suffix in ("svg", "parquet")]
    return all(own.is_file() and own.read_bytes() == kept.read_bytes() for own, kept in pairs)


def files(study: Study, name: str, reference: Reference | None = None) -> dict[str, bytes]:
    """Return, by name on the site, the figure's data, its image, and its specification as a script."""
    base = _base(study, name, reference)
    contents = {f"{base}.{suffix}": _path(study, name, suffix, reference).read_bytes() for suffix in ("parquet", "svg")}
    if reference:  # frozen before drawings were stored without what is not drawn
        contents[f"{base}.svg"] = drawings.slim(contents[f"{base}.svg"].decode()).encode()
    chart: dict[str, Any] = _rounded(_chart(study, name, reference))
    columns = {key: _columns(rows) for key, rows in chart.pop("datasets", {}).items()}
    # Read from disk, a page may load scripts but no JSON: pages draw the chart from it, and save the specification.
    contents[f"{base}.js"] = f"sandglass.chart({_text(base)},{_text(chart)},{_text(columns)});\n".encode()
    return contents


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _columns(rows: list[dict[str, Any]]) -> list[dict[str, Any]] | dict[str, list[Any]]:
    """Return rows by column, in a third of the bytes: site.js makes rows of them.

    A column is its values, or the different ones and the place of each among them where they repeat. Rows that do not
    all have the same columns stay as they are.

    >>> _columns([{"x": 1, "of": "a"}, {"x": 2, "of": "a"}, {"x": 3, "of": "b"}, {"x": 4, "of": "a"}])
    {'of': [['a', 'b'], [0, 0, 1, 0]], 'x': [[1, 2, 3, 4]]}
    >>> _columns([{"x": 1}, {"y": 2}])
    [{'x': 1}, {'y': 2}]
    """
    if not rows or not rows[0] or any(row.keys() != rows[0].keys() for row in rows):
        return rows
    columns: dict[str, list[Any]] = {}
    for name in sorted(rows[0]):
        values = [row[name] for row in rows]
        places: dict[str, int] = {}  # by their text: 1 and true are one value to Python
        at = [places.setdefault(_text(value), len(places)) for value in values]
        columns[name] = [[json.loads(text) for text in places], at] if 2 * len(places) <= len(values) else [values]
    return columns


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


def _rounded(value: Any) -> Any:
    """Return ``value`` with six digits of each number in it: more than pixels can show, and a third of the bytes."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def _base(study: Study, name: str, reference: Reference | None) -> str:
    return f"figures/{study.id}/{name}" if reference is None else f"figures/{study.id}/{reference.name}/{name}"


def _path(study: Study, name: str, suffix: str, reference: Reference | None = None) -> Path:
    path = figure_path(study.id, study.figures[name], name, suffix)
    return path if reference is None else kept_path(reference.name, path)


def _chart(study: Study, name: str, reference: Reference | None) -> dict[str, Any]:
    path = _path(study, name, "vl.json", reference)
    try:
        chart: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        again = "dvc fetch && dvc checkout data/reference" if reference else f"snakemake --force {path}"
        raise SandglassError(f"figure {path} is damaged; get it back with: {again}") from None
    return chart


def _line(words: Any) -> str:
    """Return a title of Vega-Lite, which is a text or its lines, as one line."""
    return " ".join(words) if isinstance(words, list) else str(words)
