"""N7 of the NCE study: images, runs over a grid of step sizes, tables, claim 15, Figure 4.3."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import pytest
import torch
from test_nce_digits import rng, write_mnist

from pipeline import params
from pipeline.errors import SandglassError
from pipeline.kit import intervals, verdicts
from pipeline.languages.digits import MNIST_FILES, bundled
from pipeline.models.log_ratio import resnet
from pipeline.steps import train
from pipeline.steps.analyse import finished
from pipeline.store import paths, tables
from pipeline.studies.nce import datasets, runs
from pipeline.studies.nce.analysis import images as analysis
from pipeline.studies.nce.claims import images as claims
from pipeline.studies.nce.figures import images as figures
from pipeline.studies.nce.params import Images, Run
from pipeline.training import core, ensemble, jobs
from schemas.comparisons import NOT_RUN, TOO_FEW
from schemas.curves import Curves
from schemas.nce.datasets import IMAGES, SCHEMA
from schemas.nce.tables import SCHEMAS

CPU = torch.device("cpu")
SEED = 7
WHAT = ("images", "labels")


@pytest.fixture(scope="module")
def frame(loaded: params.Params) -> pl.DataFrame:
    return datasets.generate(loaded.members("datasets")["nce-digits"], "nce-digits", SEED)[0]


def open_job(entry: Run, frame: pl.DataFrame, folder: Path, **changes: Any) -> jobs.TrainingJob:
    header, data, table = runs.prepare(entry, frame, SEED)
    given = {name: changes.pop(name) for name in list(changes) if name.startswith("initial.")}
    ensemble.write_job(folder / "job.safetensors", dataclasses.replace(header, **changes), data | given, table)
    return jobs.TrainingJob(folder / "job.safetensors")


# --- datasets ---------------------------------------------------------------------------------------------


def test_datasets_are_valid_and_mnist_is_empty_without_its_files(loaded: params.Params, frame: pl.DataFrame) -> None:
    tables.validate(frame, SCHEMA[IMAGES], "digits")
    assert frame.height == 1797 and frame["part"].unique().to_list() == ["any"] and frame["levels"][0] == 17
    none, metadata = datasets.generate(loaded.members("datasets")["nce-mnist"], "nce-mnist", SEED)
    tables.validate(none, SCHEMA[IMAGES], "mnist")
    assert none.height == 0 and metadata == {"kind": "images"}


def mnist(path: Path) -> Images:
    """The entry for the files in a folder, unpacked ones, with their md5."""
    names = {
        f"{part}_{what}": name for part, each in MNIST_FILES.items() for what, name in zip(WHAT, each, strict=True)
    }
    content = {key: (path / name).read_bytes() if path.is_dir() else b"" for key, name in names.items()}
    md5 = {key: hashlib.md5(value, usedforsecurity=False).hexdigest() for key, value in content.items()}
    return Images(study="nce", language="digits", kind="images", source="mnist", path=str(path), md5=md5)


def test_mnist_comes_from_the_folder_that_is_named(tmp_path: Path) -> None:
    dataset, _ = datasets.generate(mnist(write_mnist(tmp_path)), "nce-mnist", SEED)
    tables.validate(dataset, SCHEMA[IMAGES], "mnist")
    assert dataset["part"].to_list() == ["train"] * 6 + ["test"] * 4
    assert dataset["index"].to_list() == list(range(10)) and dataset["levels"].unique().to_list() == [256]
    expected = rng(4).integers(0, 256, (4, 4, 4)).astype(np.uint8)[1].reshape(-1)
    assert dataset["pixels"][7].to_list() == expected.tolist()
    with pytest.raises(SandglassError, match=r"datasets\.yaml: nce-mnist\.path: '/no/such' is no folder here"):
        datasets.generate(mnist(Path("/no/such")), "nce-mnist", SEED)


def test_other_files_are_refused_until_the_parameters_name_them(tmp_path: Path) -> None:
    """So that they make the dataset stale: what the parameters say is tracked, what lies at a path is not."""
    entry = mnist(write_mnist(tmp_path))
    dataset, _ = datasets.generate(entry, "nce-mnist", SEED)
    for path in list(tmp_path.iterdir()):  # packed they are the same files
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert datasets.generate(entry, "nce-mnist", SEED)[0].equals(dataset)
    write_mnist(tmp_path, test_labels=np.array([3, 1, 2, 0], np.uint8))
    md5 = mnist(tmp_path).md5
    assert md5 is not None and md5 != entry.md5
    message = rf"datasets\.yaml: nce-mnist\.md5\.test_labels: the file t10k-labels.* with md5 {md5.test_labels}$"
    with pytest.raises(SandglassError, match=message) as caught:
        datasets.generate(entry, "nce-mnist", SEED)
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="md5 must be there where path is"):
        Images(**entry.model_dump() | {"md5": None})


def test_the_files_that_the_parameters_name_are_those_of_mnist(loaded: params.Params) -> None:
    """As many sources list them; no file is needed for this."""
    md5 = loaded.members("datasets")["nce-mnist"].md5.model_dump()
    assert list(md5.values()) == [
        "6bbc9ace898e44ae57da46a324031adb",
        "a25bea736e30d166cdddb491f175f624",
        "2646ac647ad5339dbf082846283269ea",
        "27ae3e4e09519cfbb04c329615203637",
    ]


@pytest.mark.parametrize(
    ("column", "broken"),
    [
        ("pixels", [[1, 2, 3]] * 2),
        ("pixels", [[1, 2, 3, 4], [1]]),
        ("pixels", [[1, 2, 3, 17], [0] * 4]),
        ("label", [0, 10]),
        ("index", [0, 0]),
    ],
)
def test_the_schema_refuses_what_is_no_image(frame: pl.DataFrame, column: str, broken: list[Any]) -> None:
    good = frame.head(2).with_columns(pl.Series("pixels", [[0, 1, 2, 16]] * 2, dtype=pl.List(pl.UInt8)))
    tables.validate(good, SCHEMA[IMAGES], "digits")
    bad = good.with_columns(pl.Series(column, broken, dtype=good.schema[column]))
    with pytest.raises(SandglassError):
        tables.validate(bad, SCHEMA[IMAGES], "digits")


# --- runs -------------------------------------------------------------------------------------------------


def test_runs_of_one_seed_share_images_whatever_they_minimise(loaded: params.Params, frame: pl.DataFrame) -> None:
    two = {
        name: loaded.members("runs")[f"nce-digits-{name}"].model_copy(update={"replicas": 2})
        for name in ("full-nce-gd", "diag-ence-ngd")
    }
    (header, full, table), (other, diag, _) = (runs.prepare(entry, frame, SEED) for entry in two.values())
    assert header.corpus == [0, 1, 0, 1] and header.lr == [0.03, 0.03, 0.1, 0.1]
    assert (header.stream, header.streams) == (other.stream, other.streams)
    assert full["train"].shape == (2, 1437, 64) and full["train"].dtype == np.float32
    assert full["held.test"].shape == full["held.noise"].shape == (2, 32, 64)
    for name in ("train", "held.train", "held.test", "noise.mean"):
        np.testing.assert_array_equal(full[name], diag[name])
    assert not np.array_equal(full["train"][0], full["train"][1])  # each seed dequantises anew
    assert (diag["noise.factor"] == diag["noise.factor"] * np.eye(64)).all() and full["noise.factor"][0, 5, 3] != 0
    np.testing.assert_array_equal(table[:, 0], full["noise.mean"])
    np.testing.assert_array_equal(table[:, 1:], full["noise.factor"])


def test_without_images_a_run_says_where_they_come_from(loaded: params.Params, frame: pl.DataFrame) -> None:
    entry = loaded.members("runs")["nce-mnist-nce-gd"].model_copy(update={"replicas": 1})
    with pytest.raises(SandglassError, match=r"holds no images: set datasets\.nce-mnist\.path"):
        runs.prepare(entry, frame.clear(), SEED)


@pytest.mark.parametrize("run", ["full-nce-gd", "diag-nce-ngd", "diag-ence-gd", "full-ence-ngd"])
def test_every_kind_of_run_trains_and_measures(
    loaded: params.Params, frame: pl.DataFrame, run: str, tmp_path: Path
) -> None:
    job = open_job(loaded.members("runs")[f"nce-digits-{run}"], frame, tmp_path, steps=2, log_every=1)
    start = job.initial([0, 1])
    assert torch.equal(start[0], start[1])  # one seed at two rates
    state = core.train_chunk(job, [0, 1], CPU)
    curves = {name: torch.stack(rows) for name, rows in state.curves.items()}
    assert {"loss", "train_loss", "test_loss", "train_nce_loss", "clip_fraction", "gradient_norm"} <= set(curves)
    assert all(torch.isfinite(values).all() for values in curves.values())
    level = math.log(2) if "-nce" in run else 1.0
    torch.testing.assert_close(curves["train_loss"][0], torch.full((2,), level), atol=0.05, rtol=0)
    alone = core.train_chunk(job, [1], CPU)
    torch.testing.assert_close(alone.flat[0], state.flat[1], atol=1e-5, rtol=1e-4)
    job.header = dataclasses.replace(job.header, steps=1)
    moved = (core.train_chunk(job, [0, 1], CPU).flat - start).norm(dim=-1)
    lengths = torch.tensor([0.03, 0.1])
    if run.endswith("ngd"):  # as long as the rate, over all parameters of the network
        torch.testing.assert_close(moved, lengths, rtol=1e-4, atol=0)
    else:
        torch.testing.assert_close(moved, lengths * curves["gradient_norm"][0], rtol=1e-3, atol=0)


def test_every_model_is_measured_on_the_images_of_its_seed(
    loaded: params.Params, frame: pl.DataFrame, tmp_path: Path
) -> None:
    entry = loaded.members("runs")["nce-digits-diag-nce-gd"].model_copy(update={"replicas": 2, "lr": [0.1]})
    job = open_job(entry, frame, tmp_path, steps=1, log_every=1)
    state = core.train_chunk(job, [0, 1], CPU)
    held = {name: torch.from_numpy(array) for name, array in job.held.items()}
    forward = core._forward(job, job.unflatten(state.flat), torch.from_numpy(job.table))
    with torch.no_grad():
        own, swapped = (
            job.objective.evaluate(forward, held | {"corpus": torch.tensor(order)}) for order in ([0, 1], [1, 0])
        )
    for name in ("train_loss", "test_loss"):
        torch.testing.assert_close(state.curves[name][0], own[name])
        assert (state.curves[name][0] != swapped[name]).all()


def test_without_a_gradient_an_update_is_skipped_and_counted(
    loaded: params.Params, frame: pl.DataFrame, tmp_path: Path
) -> None:
    """A constant of 100 puts every log-ratio beyond the clip."""
    stuck = {"initial.head.c": np.array(100.0)}
    job = open_job(loaded.members("runs")["nce-digits-full-ence-ngd"], frame, tmp_path, steps=2, log_every=2, **stuck)
    state = core.train_chunk(job, [0], CPU)
    assert torch.equal(state.flat, job.initial([0])) and state.diverged_at.item() == -1
    assert state.curves["skipped"][0].item() == 1 and state.curves["clip_fraction"][0].item() == 1
    assert state.curves["train_loss"][0].item() == pytest.approx(math.exp(10) / 2, rel=1e-3)


def test_the_mnist_configuration_is_resnet_18_and_takes_steps(
    load: Callable[[str], params.Params], tmp_path: Path
) -> None:
    images = {
        f"{part}_images": rng(n).integers(0, 256, (n, 28, 28)).astype(np.uint8)
        for part, n in (("train", 6), ("test", 4))
    }
    dataset, _ = datasets.generate(mnist(write_mnist(tmp_path, **images)), "nce-mnist", SEED)
    small = {"replicas": 1, "lr": [0.1], "batch": 2, "steps": 1, "log_every": 1, "q_kind": "diag"}
    entry = load("paper").members("runs")["nce-mnist-ence-ngd"]
    job = open_job(entry.model_copy(update=small), dataset, tmp_path)
    convolutions = [name for name, shape in job.shapes.items() if shape[2:] == (3, 3)]
    assert len(convolutions) + 1 == 18 and job.spec.side == 28 and job.spec.features == 128
    assert 11.1e6 < sum(math.prod(shape) for shape in job.shapes.values()) < 11.3e6
    state = core.train_chunk(job, [0], CPU)
    assert math.isfinite(state.curves["train_loss"][0].item()) and not torch.equal(state.flat, job.initial([0]))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"optimizer": "adam", "betas": [0.9, 0.999], "eps": 1e-8}, "must be 'sgd' or 'normalised_sgd'"),
        ({"strides": [1, 2]}, "strides must be as many as widths, 3, got 2"),
        ({"groups": 5}, "widths must be multiples of groups, 5"),
        ({"lr": [0.1, 0.1]}, "lists a rate twice"),
        ({"held_out": 36000}, "less than 1797"),
        ({"held_out": len(bundled()[0])}, "less than 1797"),
    ],
)
def test_impossible_runs_are_refused(loaded: params.Params, change: dict[str, Any], told: str) -> None:
    entry = loaded.members("runs")["nce-digits-full-nce-gd"].model_dump()
    with pytest.raises(ValueError, match=told):
        Run(**entry | change)
    with pytest.raises(ValueError, match="path and md5 are not for source 'bundled'"):
        Images(study="nce", language="digits", kind="images", source="bundled", path="here")


# --- tables -----------------------------------------------------------------------------------------------

STEPS = [50, 100, 150]
# run -> (rate, seed) -> training losses; None from where it is not finite.
CURVES: dict[str, dict[tuple[float, int], list[float | None]]] = {
    "gd": {
        (0.1, 0): [0.7, 0.6, 0.5],
        (0.1, 1): [0.7, 0.6, 0.4],
        (0.3, 0): [0.1, 0.1, 0.1],
        (0.3, 1): [0.1, None, None],  # best, but a seed diverges
    },
    "ngd": {(0.1, 0): [0.6, 0.3, 0.1], (0.1, 1): [0.5, 0.4, 0.1], (0.3, 0): [0.2, 0.3, 0.4], (0.3, 1): [0.2, 0.5, 0.2]},
}


class Study:
    """What the analysis reads, made up: one noise, one loss, both optimisers."""

    study, experiment, seed, scale, params_hash = "nce", "nce-images", SEED, "quick", "0" * 32

    def __init__(
        self,
        curves: dict[str, dict[tuple[float, int], list[float | None]]],
        clip: float = 0.0,
        until: dict[str, int] | None = None,
    ) -> None:
        self.made = {f"nce-digits-full-nce-{name}": models for name, models in curves.items()}
        self.clip = clip
        self.entry = SimpleNamespace(early=100, clipped=0.5, area_until=until or {})
        self.settings = SimpleNamespace(confidence=0.95)

    def runs(self) -> list[str]:
        return list(self.made)

    def run_header(self, run: str) -> dict[str, Any]:
        optimizer = {"gd": "sgd", "ngd": "normalised_sgd"}[run.rpartition("-")[2]]
        entry = {"dataset": "nce-digits", "q_kind": "full", "loss": "nce", "optimizer": optimizer}
        rates, seeds = zip(*self.made[run], strict=True)
        return {"entry": entry, "lr": list(rates), "streams": list(seeds), "diverged": {}}

    def curves(self, run: str) -> pl.DataFrame:
        rows = [
            {
                "run": run,
                "replica": r,
                "step": step,
                "loss": loss,
                "accuracy": 0.5,
                "train_loss": loss,
                "test_loss": loss and loss + 0.1,
                "train_nce_loss": loss,
                "gradient_norm": 1.0,
                "clip_fraction": self.clip if step == 100 else 0.0,
            }
            | ({"skipped": 0.02} if run.endswith("ngd") else {})
            for r, losses in enumerate(self.made[run].values())
            for step, loss in zip(STEPS, losses, strict=True)
        ]
        return pl.DataFrame(rows, schema_overrides={"replica": pl.Int32, "step": pl.Int32}, infer_schema_length=None)

    def model(self, run: str) -> Any:
        factor = np.tril(rng(1).normal(size=(64, 64))).astype(np.float32)
        return SimpleNamespace(table=torch.from_numpy(np.concatenate([np.ones((1, 64), np.float32), factor])[None]))


def made(study: Any) -> dict[str, pl.DataFrame]:
    made = analysis.analyse(study)
    assert set(made) == set(analysis.TABLES)
    frames = finished(made, SCHEMAS, study)
    for name, table in frames.items():
        tables.validate(table, SCHEMAS[name], name)
    return frames


def test_a_run_that_diverges_keeps_its_minimum_and_is_not_selected() -> None:
    frames = made(Study(CURVES))
    lost = frames["digits_runs"].filter(pl.col("eta") == 0.3, seed=1, optimizer="gd").sort("step")
    assert lost["diverged"].to_list() == [False, True, True]
    assert lost["min_train_loss"].to_list() == [0.1, 0.1, 0.1] and lost["train_loss"].to_list() == [0.1, None, None]
    selected = frames["digits_selected"].filter(optimizer="gd")
    assert selected["eta"].to_list() == [0.1, 0.1] and selected["etas_diverged"].to_list() == [1, 1]
    final = frames["digits_final"].filter("diverged")
    assert (
        final.height == 1
        and final.select("area", "early_loss", "final_test_loss").null_count().sum_horizontal()[0] == 3
    )


def test_many_clipped_log_ratios_count_as_divergence_from_there_on() -> None:
    for clip, expected in ((0.5, [False, False, False]), (0.51, [False, True, True])):
        table = made(Study({"ngd": CURVES["ngd"]}, clip))["digits_runs"]
        assert table.filter(pl.col("eta") == 0.1, seed=0).sort("step")["diverged"].to_list() == expected
    assert made(Study({"ngd": CURVES["ngd"]}, 0.51))["digits_runs"].filter(pl.col("eta") == 0.1, seed=0)[
        "min_train_loss"
    ].to_list() == [0.6, 0.6, 0.6]


def test_areas_and_both_rules_of_selection() -> None:
    frames = made(Study(CURVES))
    final = frames["digits_final"].filter(pl.col("eta") == 0.1, optimizer="ngd", seed=0).row(0, named=True)
    assert final["area"] == pytest.approx((0.45 + 0.2) / 2)
    assert final["batch_area"] == pytest.approx((0.6 + 0.3 + 0.1) / 3)
    assert final["early_loss"] == 0.3 and final["final_train_loss"] == 0.1 and final["skipped"] == 3
    ngd = {row["rule"]: row for row in frames["digits_selected"].filter(optimizer="ngd").iter_rows(named=True)}
    assert ngd["s_area"]["eta"] == 0.3 and ngd["s_loss"]["eta"] == 0.1
    assert ngd["s_area"]["area"] == pytest.approx((0.3 + 0.35) / 2)


def test_areas_end_where_they_should() -> None:
    final = made(Study(CURVES, until={"nce-digits": 100, "other": 50}))["digits_final"]
    row = final.filter(pl.col("eta") == 0.1, optimizer="ngd", seed=0).row(0, named=True)
    assert row["area"] == pytest.approx(0.45) and row["batch_area"] == pytest.approx(0.45)
    assert row["final_train_loss"] == 0.1
    assert final.equals(made(Study(CURVES, until={"nce-digits": 149}))["digits_final"])


def test_methods_are_compared_seed_by_seed() -> None:
    """Each at its step size with the smallest mean area: 0.1 for GD, 0.3 for NGD."""
    rows = {row["comparison"]: row for row in made(Study(CURVES))["comparisons"].iter_rows(named=True)}
    row = rows["nce-digits-full-nce-early-loss"]
    found = intervals.mean([0.3 - 0.6, 0.5 - 0.6], 0.95)
    assert (row["value"], row["lo"], row["hi"]) == pytest.approx(found[:3])
    assert (row["n"], row["interval"], row["state"]) == (2, intervals.STUDENT, TOO_FEW)
    assert rows["nce-digits-full-nce-area-seeds"]["value"] == 1
    assert rows["nce-digits-full-ence-area"]["state"] == NOT_RUN


def test_the_noise_is_that_of_the_checkpoint() -> None:
    row = made(Study(CURVES))["digits_noise"].row(0, named=True)
    factor = Study(CURVES).model("nce-digits-full-nce-gd").table[0, 1:].double().numpy()
    np.testing.assert_allclose(np.array(row["cov"]).reshape(64, 64), factor @ factor.T, rtol=1e-12, atol=1e-12)
    assert row["mean"] == [1.0] * 64


# --- claim and figure -------------------------------------------------------------------------------------


def results(curves: dict[str, Any]) -> Any:
    frames = made(Study(curves)) if curves else {}
    empty = {name: tables.conform([], SCHEMAS[name], scale="quick", params_hash="0" * 32) for name in SCHEMAS}
    return SimpleNamespace(study="nce", table=lambda name: frames.get(name, empty[name]))


def thrice(curves: dict[str, dict[tuple[float, int], list[float | None]]]) -> dict[str, Any]:
    """The same models three times, as further seeds."""
    return {
        name: {(eta, seed + 2 * i): losses for (eta, seed), losses in models.items() for i in range(3)}
        for name, models in curves.items()
    }


def judged(curves: dict[str, Any], scale: str = "quick") -> dict[str, dict[str, Any]]:
    frame = verdicts.table(claims.faster(results(curves)), {"15": "It is so."}, "nce", scale, "x")
    assert set(frame["claim"]) == {"15"} and frame.height == 24
    return {row["gate"]: row for row in frame.iter_rows(named=True)}


def test_claim_15_asks_most_seeds_of_the_area_and_the_interval_of_means() -> None:
    area, early, mean = (f"digits, full noise, NCE: {name}" for name in ("area", "early loss", "mean area"))
    gates = judged(thrice(CURVES))
    assert gates[area]["verdict"] == gates[early]["verdict"] == gates[mean]["verdict"] == "holds"
    assert gates[area]["value"] == 1 and gates[area]["n"] == 6
    assert gates[mean]["lo"] <= gates[mean]["value"] <= gates[mean]["hi"] < 0
    assert judged(CURVES)[area]["verdict"] == "too few models"
    assert gates["digits, full noise, NCE: last test loss"]["kind"] == "own check"
    # At the rate with the smallest area, one seed is above GD after 100 updates.
    worse = {"gd": CURVES["gd"], "ngd": CURVES["ngd"] | {(0.3, 1): [0.0, 0.65, 0.0]}}
    gates = judged(thrice(worse))
    assert gates[early]["verdict"] == "undecided at this scale" and gates[area]["verdict"] == "holds"
    swapped = {"gd": CURVES["ngd"], "ngd": CURVES["gd"]}
    assert judged(thrice(swapped))[area]["verdict"] == "fails"
    assert judged(thrice(CURVES), "smoke")[area]["verdict"] == "not run at this scale"


def test_what_was_not_run_is_not_tested_and_says_why() -> None:
    assert judged(CURVES)["MNIST, full noise, eNCE: area"]["verdict"] == "not run at this scale"
    lost = {"gd": {(0.1, 0): [None] * 3, (0.1, 1): [0.1] * 3}, "ngd": CURVES["ngd"]}
    gate = judged(lost)["digits, full noise, NCE: area"]
    assert (gate["verdict"], gate["n"], gate["excluded"]) == ("too few models", 0, 2)
    assert gate["excluded_reason"] == "a seed diverged at each step size of a method"
    assert all(gate["verdict"] == "not run at this scale" for gate in judged({}).values())


def test_figure_43_shows_every_step_size_until_it_diverges() -> None:
    chart, data = figures.fig43(results(CURVES))
    assert isinstance(chart, alt.VConcatChart) and len(chart.vconcat) == 2  # one noise, two rules
    assert data.filter(pl.col("eta") == 0.3, optimizer="gd")["step"].to_list() == [50]
    assert data.filter("last").select("optimizer", "eta").rows() == [("gd", 0.3)]
    ngd = data.filter(pl.col("eta") == 0.1, optimizer="ngd")
    assert ngd["train_loss"].to_list() == pytest.approx([0.55, 0.35, 0.1])
    assert ngd["least"].to_list() == [0.5, 0.3, 0.1] and ngd["most"].to_list() == [0.6, 0.4, 0.1]
    spec = chart.to_dict()
    assert "NCE, NGD, s_area: η 0.3" in spec["description"] and "8 × 8 digits" in str(spec["vconcat"][0])
    assert figures.fig43(results({}))[1].columns == ["why"]


@pytest.mark.parametrize("packed", [False, True])
def test_tiny_files_of_mnist_train_through_the_step(
    loaded: params.Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    """From IDX files, plain or gzipped, to checkpoints and curves, through loader, dataset, run and trainer."""
    entry = mnist(write_mnist(tmp_path))
    if packed:
        for file in list(tmp_path.glob("*ubyte")):
            (tmp_path / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
            file.unlink()
    images, metadata = datasets.generate(entry, "nce-mnist", SEED)
    dataset = tmp_path / "nce-mnist.parquet"
    tables.write(images, dataset, SCHEMA, metadata)
    small = {
        "replicas": 2,
        "lr": [0.1],
        "steps": 3,
        "batch": 3,
        "log_every": 1,
        "evaluated": 4,
        "widths": [4, 8],
        "strides": [1, 2],
        "groups": 2,
        "features": 4,
        "precision": "fp32",
    }
    names = ("nce-mnist-nce-ngd", "nce-mnist-ence-gd")
    members = {name: loaded.members("runs")[name].model_copy(update=small) for name in names}

    def out(path: Path) -> Path:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        return tmp_path / path

    monkeypatch.setattr(paths, "WORK", tmp_path / "work")
    job = SimpleNamespace(
        study="nce",
        id="nce-mnist-full",
        entry=SimpleNamespace(members=members),
        trainer="",
        inputs=[dataset],
        seed=SEED,
        scale="smoke",
        params_hash="0" * 32,
        device="cpu",
        notes={},
        say=lambda words: None,
        out=out,
    )
    train.run(job)
    curves = tables.read(tmp_path / paths.curves_path("nce", "nce-mnist-full"), Curves)
    assert set(curves["run"]) == set(names) and curves.height == 2 * 2 * 3
    assert curves["train_loss"].is_finite().all() and curves["test_loss"].is_finite().all()
    for name in names:
        made = resnet.load(tmp_path / paths.checkpoint_path("nce", "nce-mnist-full", name))
        assert made.spec.side == 4 and made.params["linear.W"].shape == (2, 8, 4) and made.table.shape == (2, 17, 16)
