"""Each real study through Snakemake at smoke scale, and what its steps import against what they declare."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from figure_words import unsaid
from ruamel.yaml import YAML
from workspace import REPOSITORY, STUDIES, Workspace

from pipeline import params
from pipeline.engine import graph
from pipeline.report.results import ERRATUM_KINDS
from schemas.claims import NOT_RUN, TOO_FEW


def test_everything_is_built_and_recorded(smoke: Workspace) -> None:
    loaded = params.load(smoke.path)
    made = [path for job in graph.jobs(loaded) for path in graph.outputs(job, loaded)]
    assert [path for path in made if not (smoke.path / path).is_file()] == []
    smoke.assert_clean()
    assert "&id" not in (smoke.path / "dvc.lock").read_text()  # entries of params.yaml share values


@pytest.mark.parametrize("study", ["dyck", "nce"])
def test_a_study_alone_is_what_it_is_beside_all_others(alone: Callable[[str], Workspace], study: str) -> None:
    alone(study).assert_clean()


@pytest.mark.parametrize("study", STUDIES)
def test_no_claim_is_judged_at_smoke_scale(smoke: Workspace, study: str) -> None:
    claims = pl.read_parquet(smoke.path / f"data/claims/{study}/claims.parquet")
    stated = importlib.import_module(f"pipeline.studies.{study}.claims").STATEMENTS
    assert set(claims["claim"]) == set(stated)
    assert {NOT_RUN} <= set(claims["verdict"]) <= {NOT_RUN, TOO_FEW}


@pytest.mark.parametrize("study", STUDIES)
def test_figures_carry_their_data_in_three_forms(smoke: Workspace, study: str) -> None:
    folder = smoke.path
    for experiment, name in figures_of(folder, study):
        base = folder / f"data/figures/{study}" / experiment / name
        assert base.with_suffix(".svg").read_text().startswith("<svg")
        chart = json.loads(base.with_suffix(".vl.json").read_text())
        assert chart["$schema"].startswith("https://vega")
        assert not lost_titles(chart), f"{name}: an axis without a title takes it from the layers beside it"
        assert pl.read_parquet(base.with_suffix(".parquet")).height > 0
        module = params.load(folder).experiments[experiment].module
        draw = getattr(importlib.import_module(f"pipeline.studies.{study}.figures.{module}"), name)
        assert not unsaid(chart, draw.__doc__ or ""), f"{name}: say it in title, subtitle or caption"


def lost_titles(chart: Any) -> list[set[str | None]]:
    """The titles of each axis that one layer gives words and another none: such an axis is drawn without."""
    if isinstance(chart, list):
        return [titles for part in chart for titles in lost_titles(part)]
    if not isinstance(chart, dict):
        return []
    if "layer" not in chart:
        return [axis for key, part in chart.items() if key != "datasets" for axis in lost_titles(part)]
    every = [axis_titles(chart, channel, {}) for channel in ("x", "y")]
    return [titles for titles in every if None in titles and len(titles) > 1]


def axis_titles(layer: dict[str, Any], channel: str, above: dict[str, Any]) -> set[str | None]:
    """The titles that the layers of a panel give the axis of a channel; not of layers that leave the title out."""
    encoding = above | layer.get("encoding", {})
    if "layer" in layer:
        return {title for part in layer["layer"] for title in axis_titles(part, channel, encoding)}
    own = encoding.get(channel, {})
    if not {"title", "field"} <= {*own}:
        return set()
    return {"\n".join(own["title"]) if isinstance(own["title"], list) else own["title"]}


def figures_of(folder: Path, study: str) -> list[tuple[str, str]]:
    """Experiment and name of each figure of a study, by the parameters in ``folder``."""
    experiments = params.load(folder).of_study("experiments", study)
    return [(key, name) for key, experiment in experiments.items() for name in experiment.figures]


@pytest.mark.parametrize("study", STUDIES)
def test_the_report_shows_every_figure_claim_and_artifact(smoke: Workspace, study: str) -> None:
    site = smoke.path / "data/report"
    page = (site / f"study/{study}.html").read_text()
    for _, name in figures_of(smoke.path, study):
        assert f'id="figure-{name}"' in page
        for suffix in ("js", "svg", "parquet"):
            assert len(list((site / "figures" / study).rglob(f"{name}.{suffix}"))) == 1
    claims = pl.read_parquet(smoke.path / f"data/claims/{study}/claims.parquet")
    for claim in claims["claim"].unique():
        assert f'id="claim-{claim}"' in page
    made = {path for path in smoke.artifacts() if not path.startswith("report/")}
    pages = "".join(path.read_text() for path in (site / "artifact").rglob("*.html"))
    assert all(f"<code>data/{path}</code>" in pages for path in made)
    known = re.compile(r"http://www\.w3\.org|https://arxiv\.org/abs/\d{4}\.\d{5}")  # names of markup, and papers
    assert "http" not in known.sub("", page)


@pytest.mark.parametrize("study", STUDIES)
def test_every_erratum_says_in_a_sentence_what_is_wrong_and_what_follows(smoke: Workspace, study: str) -> None:
    theory = (smoke.path / f"data/theory/{study}").glob("*.parquet")
    errata = set(pl.concat([pl.read_parquet(file, columns=["erratum"]) for file in theory])["erratum"]) - {""}
    file = REPOSITORY / f"pipeline/studies/{study}/errata.yaml"
    words = YAML(typ="safe").load(file.read_text(encoding="utf-8")) if file.is_file() else {}
    assert errata == words.keys()
    assert all(entry[key].endswith(".") for entry in words.values() for key in ("title", "follows"))
    assert {entry["kind"] for entry in words.values()} <= ERRATUM_KINDS.keys()
