"""What README.md and docs/ say is what parameters and committed results are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ruamel.yaml import YAML
from workspace import REPOSITORY, load_all, stored

from pipeline.audit import readme
from pipeline.errors import SandglassError
from pipeline.kit import comparisons
from pipeline.references import standing
from pipeline.references.upgrade import known_words
from schemas.claims import FAILS, HOLDS, KINDS, NOT_RUN, STATED, TOO_FEW, UNDECIDED

SETS = " ".join((REPOSITORY / "docs/reference-sets.md").read_text(encoding="utf-8").split())
LOADED = load_all()
STUDIES = LOADED.studies


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> readme.Results:
    monkeypatch.chdir(REPOSITORY)
    return readme.Results(LOADED)


@pytest.mark.parametrize("document", readme.DOCUMENTS, ids=str)
def test_the_command_would_change_nothing(results: readme.Results, document: Path) -> None:
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    assert "<!-- written: " in text
    assert readme.filled(text, results, str(document)) == text, readme.COMMAND


@pytest.mark.parametrize("study", STUDIES)
def test_every_claim_that_fails_is_named(results: readme.Results, study: str) -> None:
    gates = results.claims(study)
    if gates is None:
        return  # a study that was never built
    failed = {int(re.sub(r"\D", "", number)) for number in gates.filter(kind=STATED, verdict=FAILS)["claim"]}
    words = re.findall(r"claims? ([\d, ]+)", results.words(study)["does_not_hold"])
    assert {int(n) for each in words for n in re.findall(r"\d+", each)} == failed


def test_kinds_are_counted_apart(results: readme.Results, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statements of the source by their verdicts, and of our corrected forms and checks how many hold."""
    rows = [
        *[("1", STATED, verdict) for verdict in (HOLDS, HOLDS, UNDECIDED, FAILS, TOO_FEW, NOT_RUN, NOT_RUN)],
        *[("2", kind, verdict) for kind in KINDS[1:] for verdict in (HOLDS, FAILS, TOO_FEW)],
    ]
    frame = pl.DataFrame(rows, schema=["claim", "kind", "verdict"], orient="row")
    monkeypatch.setattr(readme.Results, "claims", lambda _, study: frame if study == "dyck" else None)
    monkeypatch.setattr(readme.Results, "words", lambda *_: {"here": "all", "does_not_hold": "one"})
    monkeypatch.setattr(readme.Results, "sets", lambda *_: [])
    monkeypatch.setattr(readme, "_stand", lambda _: "as it is")
    lines = {line.split("`")[1]: line for line in readme.BLOCKS["verdicts"](results, "").splitlines()[2:]}
    assert lines["dyck"] == f"| `dyck` | 2 | 1 | 1 | 1 | 2 | {len(KINDS) - 1} of {2 * (len(KINDS) - 1)} |"
    assert lines["depth"] == "| `depth` | | | | | | |"
    studies = readme.BLOCKS["studies"](results, "")
    assert "*Here*: all; 2 claims." in studies and "*Here*: all; not built yet." in studies
    assert "*Open, or against the source, in this build*: one." in studies


def test_every_claim_stands_somewhere(results: readme.Results) -> None:
    paragraphs = [each.replace("\n", " ") for each in readme.BLOCKS["studies"](results, "").split("\n\n")]
    said = iter(each for each in paragraphs if each.startswith("*By the strongest evidence*"))
    for study in results.params.studies:
        gates = results.gates[study]
        if gates is not None:
            lines = standing.lines(gates)
            text = next(said)
            holding, _, others = text.partition(" claims hold")
            assert int(holding.split()[-1]) == sum(line.verdict == HOLDS for line in lines)
            assert set(re.findall(r"\d+[a-z]?", others)) == {line.claim for line in lines if line.verdict != HOLDS}
    assert next(said, None) is None


def test_what_is_around_the_blocks_stays_and_an_unknown_one_is_named(results: readme.Results) -> None:
    text = "before\n<!-- written: {} -->\nold\n<!-- end -->\nafter\n"
    filled = readme.filled(text.format("jobs"), results, "file.md")
    assert filled.startswith("before\n<!-- written: jobs -->\nAll of this is ")
    assert filled.endswith("\n<!-- end -->\nafter\n") and "old" not in filled
    with pytest.raises(SandglassError, match=r"file.md: nothing writes a block 'job'; did you mean jobs\?"):
        readme.filled(text.format("job"), results, "file.md")


def test_stack_like_shares_of_the_reference_sets() -> None:
    shares = {
        row["first"]: row
        for name, folder in (("dyck", ""), ("dyck-part2", ""), ("dyck-part4", "dyck-table1/"))
        for row in kept_table(name, f"{folder}contrasts")
        .filter(contrast="stack", statistic="stack-like share")
        .iter_rows(named=True)
    }
    few, most = shares["dyck-table1-k3-d4-l2"], shares["dyck-table1-k3-d8-l2"]
    assert {shares[f"dyck-table1-k2-d{depth}-l2"]["value"] for depth in (4, 8)} == {0.0}
    assert f"is 0 for two types of bracket, {few['value']:g} for three types and depth four" in SETS
    assert f"{most['value']:g} [{most['lo']:g}, {most['hi']:g}] for three types and depth eight" in SETS
    deep = shares["dyck-table1-k3-d8-l3"]
    assert f"(of models of three layers there: {deep['value']:g} [{deep['lo']:.2f}, {deep['hi']:.2f}])" in SETS


def test_variation_of_wide_models_and_of_table_1_on_complete_strings() -> None:
    last = pl.concat(
        kept_table(name, path).select(
            "run", "probe_split", "layer", "start_included", "variation_mean", "ci_lo", "ci_hi"
        )
        for name, path in (("dyck", "variation"), ("dyck-part5", "dyck-attention/variation"))
    ).filter(probe_split="probe16", layer=2)
    without, start = last.filter(run="dyck-wide").sort("start_included").rows()
    narrow = last.filter(run="dyck-standard").sort("start_included")["variation_mean"]
    assert (
        f"{interval(*without[-3:], digits=2)} without and {interval(*start[-3:], digits=2)} with the start token "
        f"on D4, where M1 has {narrow[0]:.2f} and {narrow[1]:.2f}"
    ) in SETS
    contrasts = kept_table("dyck-part5", "dyck-attention/contrasts")
    closing = contrasts.filter(contrast="in_distribution", first="dyck-wide", metric="acc_close")["value"].item()
    assert f"they predict {closing:.4f} of closing brackets at the median" in SETS
    complete = kept_table("dyck-part5", "dyck-table1/variation_table1").sort("run", "layer")
    of_two = kept_table("dyck-part6", "dyck-stack/variation_table1").sort("run", "layer")
    both = pl.concat([complete, of_two.select(complete.columns)])
    assert both["n_models"].unique().to_list() == [40] and both["n_excluded"].sum() == 0
    third, second = both.filter(layer=3), both.filter(layer=2)
    assert f"{listed(intervals(third))} in the order" in SETS
    assert f"published ones do not ({listed(rounded(third['published_mean']))})" in SETS
    below, alone = second.filter(n_layers=3), second.filter(n_layers=2)
    published = f"(published {listed(rounded(below['published_mean']))})"
    assert f"Second layers below them have {listed(rounded(below['mean']))} {published}" in SETS
    published = f"(published {listed(rounded(alone['published_mean']))})"
    assert f"Second layers of models of two have {listed(intervals(alone))} {published}" in SETS
    # The languages are in the order of the table: two types of bracket, then three.
    theirs = alone["published_mean"]
    assert (alone["mean"] < 1.5 * theirs).all()
    assert (alone["ci_hi"] < theirs).to_list() == [False, False, True, True]
    first = both.filter(layer=1)
    ours, published = (
        " to ".join(rounded([first[name].min(), first[name].max()], 2)) for name in ("mean", "published_mean")
    )
    assert f"First layers of both have {ours} (published {published})" in SETS


def test_words_of_older_sets_are_theirs_and_name_comparisons_that_kept_their_meaning() -> None:
    """A median of differences or quotients was a difference or quotient of medians then."""
    names = [path.stem for path in sorted((REPOSITORY / "data/reference").glob("*.dvc"))]
    older = [frame for frame in map(frozen_claims, names) if "comparison" not in frame.columns]
    frozen = {row for frame in older for row in frame.select("study", "claim", "gate", "predicate").rows()}
    assert known_words().keys() <= frozen
    declared = {study: {each.key: each for each in comparisons.declared(study)} for study in STUDIES}
    for (study, *_), key in known_words().items():
        comparison = declared[study][key]
        assert comparison.statistic not in (comparisons.SHIFT, comparisons.RATIO), key
        assert comparison.unit == comparisons.MODEL, key


def test_sizes_that_failed_in_older_sets_count_as_those_that_held(results: readme.Results) -> None:
    """The reason of what failed names one end of the margin; today's gate asks for both."""
    rows = {row["gate"]: row for row in results.gates["dyck"] or [] if row["claim"] == "13"}
    for name in ("k=2, D=4, 2 layers: layer 2, size", "k=2, D=8, 2 layers: layer 2, size"):
        found = [(row["verdict"], row["same"]) for kept, row in rows[name]["references"] if kept.name == "dyck"]
        assert found == [(FAILS if "D=4" in name else HOLDS, True)]
    frozen = frozen_claims("dyck").filter(pl.col("predicate").str.contains("±"), pl.col("claim") == "13")
    measured = frozen.filter(pl.col("value").is_not_null()).select("study", "claim", "gate", "predicate").rows()
    assert measured and set(measured) <= known_words().keys()


def test_what_was_held_against_another_bar_is_told_for_its_scale(results: readme.Results) -> None:
    row = next(row for row in results.gates["dyck"] or [] if (row["claim"], row["gate"]) == ("5", "M1"))
    found, kept = standing.measured_at(row, "paper") or (None, None)
    assert found and kept and not found["same"] and 3.5 < found["value"] < 3.6
    assert standing.measured_at(row, "smoke") is None
    assert standing.measured_at(row, "quick") == (row, None)


def intervals(rows: pl.DataFrame) -> list[str]:
    return [interval(*row) for row in rows.select("mean", "ci_lo", "ci_hi").rows()]


def rounded(values: Iterable[Any], digits: int = 1) -> list[str]:
    return [f"{value:.{digits}f}" for value in values]


def listed(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def interval(mean: float, lo: float, hi: float, digits: int = 1) -> str:
    return f"{mean:.{digits}f} [{lo:.{digits}f}, {hi:.{digits}f}]"


def kept_files(name: str) -> dict[str, str]:
    """The md5s of the files of a reference set."""
    pointer = YAML(typ="safe").load((REPOSITORY / f"data/reference/{name}.dvc").read_text(encoding="utf-8"))
    listing = json.loads(stored(pointer["outs"][0]["md5"]).read_bytes())
    return {each["relpath"]: each["md5"] for each in listing}


def kept_table(name: str, path: str) -> pl.DataFrame:
    """A table of a reference set, as the embedded store holds it."""
    return pl.read_parquet(stored(kept_files(name)[f"tables/{path}.parquet"]))


def frozen_claims(name: str) -> pl.DataFrame:
    """The claims table of a reference set as it was frozen."""
    return pl.read_parquet(stored(kept_files(name)["claims/claims.parquet"]))
