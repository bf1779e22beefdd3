"""The index of every study: every id has an artifact that the graph makes and code that exists."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from pipeline import params
from pipeline.engine import graph
from pipeline.errors import SandglassError
from pipeline.report import catalogue, index

ROOT = Path(__file__).parents[2]


def _numbered(**counts: int) -> list[str]:
    return [f"{group}{number}" for group, count in counts.items() for number in range(1, count + 1)]


# The inventories of the chapters, and what the report shows beside them that has no id.
IDS = {
    "dyck": _numbered(D=8, M=10, T=3, A=6, E=11, TH=10, F=13, TAB=1),
    "depth": [
        *_numbered(D=5, M=2, R=2), "F1", "F2", "F3", "F3b", "F4", "F5", "F6", "F7", *_numbered(T=9, A=1),
    ],
    "nce": [
        "LOSS", "ELOSS", "FAM", "D1", "D16", "MNIST", "DIG", "GD", "NGD", "NEWT", *_numbered(NUM=4),
        "L44", "L45", "P7", "P8", "L46", "L47", "L48", "L49", "L50", "T17", "T18", "L51", "T19", "C2", "T20",
        "L53", "L54", "T21", *_numbered(N=7), "F41", "F42", "F43",
    ],
    "automata": [
        "AUT-CYC", "AUT-C2P2", "AUT-C2P3", "AUT-D", "AUT-PERM", "AUT-Q8", "AUT-DYCK42", "AUT-GRID", "AUT-ABAB",
        "AUT-OBS", "AUT-MEM", "AUT-GRID2D", "AUT-RUBIK", "AUT-RAND", "MOD-GPT", "MOD-LSTM", "MOD-PE", "MOD-SCRATCH",
        "MOD-RECENCY", "MOD-STAB", "EXP-DEPTH", "EXP-INSTAB", "EXP-STAB", "EXP-EVALSD", "EXP-ATTN", "EXP-INDIR",
        "EXP-INCOMP", "EXP-OODP", "EXP-OODC", "EXP-LEN", "EXP-PE", "EXP-COVER", "THM-10", "GADGETS", "LEM-15",
        "LEM-16", "LEM-17", "LEM-18", "LEM-19", "THM-16", "LEM-20", "LEM-21", "THM-11", "THM-12", "THM-13",
        "FIG-DEPTH", "FIG-CURVES", "FIG-ATTN", "FIG-INDIR", "FIG-INCOMP", "FIG-OOD", "FIG-LEN", "FIG-PE",
        "FIG-GRIDALG", "FIG-SCHEMA", "EXPLORER", "THY-LEDGER", "THY-ERRATA",
    ],
    "flipflop": [
        "FF-D1", "FF-D2", "FF-D3", "FF-D4", "FF-D5", "FF-D6", "FF-D7", "FF-D8", "FF-D9", "FF-D10", "FF-D11",
        "FF-D12", "FF-D13", "FF-D14", "FF-M1", "FF-M2", "FF-M3", "FF-M4", "FF-M5", "FF-M6", "FF-M7", "FF-M8", "FF-M9",
        "FF-M10", "FF-M11", "FF-M12", "FF-R1", "FF-R2", "FF-R3", "FF-R4", "FF-R5", "FF-R6", "FF-R7", "FF-R8", "FF-R9",
        "FF-R10",
        "FF-A1", "FF-A2", "FF-A3", "FF-A4", "FF-A5", "FF-A6", "FF-A7", "FF-A8", "FF-A9", "FF-A10", "FF-A11",
        "FF-A12", "FF-T1", "FF-T2", "FF-T3", "FF-T4", "FF-T5", "FF-T6", "FF-T7", "FF-T8", "FF-T9", "FF-T10",
        "FF-F3.2", "FF-F3.23", "FF-F3.24", "FF-F3.25", "FF-F3.26", "FF-F3.27", "FF-F3.28", "FF-F3.29", "FF-F3.30",
        "FF-F3.33", "FF-F3.34", "FF-F3.36", "AUTOPSY",
    ],
    "distillation": [
        "SP-DATA", "HP-DATA", "M-MLP", "M-GPTP", "T-CE", "T-OS", "T-PROG", "T-2T", "T-3T", "T-TEMP", "A-CORR",
        "A-PHASE", "A-ATTN", "E1", "E2", "E3", "E5", "E6", "FIG-4.4", "FIG-4.5", "FIG-4.10", "FIG-4.14",
        "FIG-4.17", "FIG-4.18", "FIG-4.20", "M-RELU", "T-2STAGE", "TH-MAJ", "TH-C7", "TH-C8", "TH-L63",
        "TH-L64", "TH-COR3", "TH-L65", "TH-COR4", "TH-T23", "TH-L66", "THY-ERRATA", "PCFG-G", "PCFG-MLM", "PCFG-AR",
        "PCFG-NT", "TH-LEN", "TH-PLATEAU", "A-ORACLE", "TH-INTERP", "TH-P9", "TH-P10", "FIG-4.6", "FIG-4.23", "BOUNDS",
        "SHARPNESS",
        "M-BERT", "M-GPTA", "M-GPTP-HID", "M-GPTP-AVG", "T-EQ", "T-K", "A-ROB", "A-CLOSE", "A-NT", "A-T80", "E4",
        "E7", "E8", "E9", "E10", "NAT-CORPUS", "E11",
        "FIG-4.7", "FIG-4.8", "FIG-4.9", "FIG-4.12", "FIG-4.13", "FIG-4.25", "FIG-4.26", "FIG-4.27",
        "FIG-4.28", "FIG-4.30", "FIG-4.31", "FIG-4.32", "FIG-4.34", "CURRICULUM",
    ],
    "topic": [
        "TOPIC-D1", "TOPIC-D2", "TOPIC-D3", "TOPIC-D4", "TOPIC-M1", "TOPIC-M2", "TOPIC-M3", "TOPIC-L1",
        "TOPIC-O1", "TOPIC-A1", "TOPIC-X1", "TOPIC-MT1", "TOPIC-MT2", "TOPIC-MT4", "TOPIC-E1", "TOPIC-E2",
        "TOPIC-E3", "TOPIC-E4", "TOPIC-E5", "TOPIC-E6", "TOPIC-F2.1", "TOPIC-F2.2", "TOPIC-F2.4",
        "TOPIC-F2.5", "TOPIC-F2.6", "TOPIC-F2.10", "TOPIC-T2.1", "TOPIC-T2.2", "TOPIC-TH1", "TOPIC-TH2",
        "TOPIC-TH3", "TOPIC-TH4", "TOPIC-TH5", "TOPIC-TH6", "TOPIC-TH7", "FLOORS", "TOPIC-E7", "TOPIC-F2.7",
        "TOPIC-F2.8", "TOPIC-S1", "TOPIC-S2", "TOPIC-M4", "TOPIC-M5", "TOPIC-MT3", "TOPIC-MT5", "TOPIC-E8",
        "TOPIC-E9", "TOPIC-F2.3", "TOPIC-F2.9", "TOPIC-T2.3", "TOPIC-T2.5",
    ],
}  # fmt: skip
AIDS = {
    "dyck": {"runs", "readings", "stack_score", "broken_solvers", "training_length"},
    "depth": set(),
    "nce": set(),
    "automata": {"runs"},
    "flipflop": set(),
    "distillation": set(),
    "topic": {"configs", "comparisons", "matrices"},
}


@pytest.fixture(scope="module")
def artifacts() -> Iterator[dict[Path, catalogue.Artifact]]:
    with contextlib.chdir(ROOT):
        yield catalogue.by_path(catalogue.artifacts(params.load()))


def test_every_study_has_an_index() -> None:
    assert set(params.load(ROOT).studies) == set(IDS) == set(AIDS)


@pytest.mark.parametrize("study", IDS)
def test_every_item_has_artifacts_and_code(artifacts: dict[Path, catalogue.Artifact], study: str) -> None:
    items = index.load(study, artifacts)
    assert all(item.what and item.artifacts and item.code for item in items)
    assert [item.id for item in items] == IDS[study]


@pytest.mark.parametrize("study", IDS)
def test_every_table_figure_and_theory_check_is_in_the_index(
    artifacts: dict[Path, catalogue.Artifact], study: str
) -> None:
    shown = {artifact for item in index.load(study, artifacts) for artifact, _ in item.artifacts}
    own = [
        a for a in {*artifacts.values()} if a.job.study == study and a.kind in ("table", "figure", "theory")
    ]
    assert own and {a.name for a in own if a not in shown} <= AIDS[study]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"artifacts": ["tables/toy/toy-means/nothing.parquet"]},
            "A1: nothing makes data/tables/toy/toy-means/nothing.parquet",
        ),
        ({"code": ["kit/stats:nothing"]}, "A1: pipeline/kit/stats.py has no nothing"),
        ({"code": ["nowhere:check"]}, "A1: pipeline/nowhere.py has no check"),
        ({"code": None}, "not an index"),
    ],
)
def test_what_does_not_exist_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, list[str]], message: str
) -> None:
    path = Path("data/tables/toy/toy-means/means.parquet")
    known = {path: catalogue.Artifact(graph.Job("analyse", "toy-means", "toy"), "means", (path,))}
    entry = {
        "what": "accuracy",
        "artifacts": ["tables/toy/toy-means/means.parquet"],
        "code": ["kit/stats:simplex_distance"],
    }
    monkeypatch.chdir(tmp_path)
    file = Path("pipeline/studies/toy/index.yaml")
    file.parent.mkdir(parents=True)
    stats = Path("pipeline/kit/stats.py")
    stats.parent.mkdir()
    stats.write_text((ROOT / stats).read_text())
    with file.open("w") as out:
        YAML(typ="safe").dump({"A1": entry}, out)
    assert [item.id for item in index.load("toy", known)] == ["A1"]
    with file.open("w") as out:
        YAML(typ="safe").dump({"A1": entry | change}, out)
    with pytest.raises(SandglassError, match=message):
        index.load("toy", known)
