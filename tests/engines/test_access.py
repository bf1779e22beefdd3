"""Results from Python: what `pipeline.load_table` and `pipeline.load_run` give, and what they refuse."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from workspace import REPOSITORY, Workspace

import pipeline
from pipeline import access
from pipeline.engine import graph
from pipeline.errors import SandglassError
from pipeline.languages import dyck as language
from pipeline.models.transformer import decoder as transformer
from pipeline.store import checkpoints

D4 = "[[[[]]]](((())))"


def test_importing_the_package_imports_nothing_else() -> None:
    """Every step imports it, on machines that have little more than torch."""
    code = (
        "import sys; before = set(sys.modules); import pipeline; print(*set(sys.modules) - before); "
        "print(pipeline.load_table.__module__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    loaded, module = done.stdout.splitlines()
    packages = {module.split(".")[0] for module in loaded.split()} - sys.stdlib_module_names
    assert packages == {"pipeline"}
    assert "pipeline." not in loaded
    assert module == "pipeline.access"
    with pytest.raises(AttributeError, match="no attribute 'load_tabel'"):
        getattr(pipeline, "load_" + "tabel")


def test_every_table_is_what_its_files_hold(smoke: Workspace) -> None:
    data = smoke.path / "data"
    names = pipeline.list_tables("dyck", root=smoke.path)
    assert {"variation", "claims", "theory", "curves", "dyck-probe16"} <= set(names)
    for name in names:
        frame = pipeline.load_table("dyck", name, root=smoke.path)
        files = {
            "claims": [data / "claims/dyck/claims.parquet"],
            "theory": sorted((data / "theory/dyck").iterdir()),
            "curves": sorted((data / "runs/dyck").glob("*/curves.parquet")),
        }.get(name, [*data.glob(f"tables/dyck/{name}.parquet"), *data.glob(f"datasets/dyck/{name}.parquet")])
        whole = pl.concat(map(pl.read_parquet, files))
        assert frame.height == whole.height
        assert frame.sort(frame.columns[:3]).equals(whole.sort(frame.columns[:3])) or name == "curves"
        if name == "curves":
            keys = ["run", "replica", "step"]
            assert frame.sort(keys).equals(whole.sort(keys))


def test_curves_of_runs_with_other_metrics_are_one_table(smoke: Workspace) -> None:
    curves = pipeline.load_table("nce", "curves", root=smoke.path)
    assert {"nce-digits-full-nce-gd", "nce-digits-full-nce-ngd"} <= set(curves["run"])
    assert {"gradient_norm", "skipped"} <= set(curves.columns)
    assert curves.filter(pl.col("run").str.ends_with("-ngd"))["skipped"].null_count() == 0


def test_the_work_tree_is_found_from_below_it(smoke: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(smoke.path / "data/tables/dyck")
    assert pipeline.load_table("dyck", "variation")["scale"].unique().to_list() == ["smoke"]


def test_without_a_work_tree_around_it_is_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert pipeline.list_runs() == pipeline.list_runs(root=REPOSITORY) > pipeline.list_runs("dyck")
    with pytest.raises(SandglassError, match=r"holds no params\.yaml"):
        pipeline.list_runs(root=tmp_path)


def test_a_reference_set_is_read_in_place_of_what_was_built(dyck: Workspace) -> None:
    with pytest.raises(SandglassError, match="no such file in the reference set dyck"):
        pipeline.load_table("dyck", "variation", root=dyck.path, reference=True)
    kept = dyck.path / "data/reference/dyck/tables/variation.parquet"
    kept.parent.mkdir(parents=True)
    shutil.move(dyck.path / "data/tables/dyck/variation.parquet", kept)
    assert pipeline.load_table("dyck", "variation", root=dyck.path, reference=True).height
    with pytest.raises(SandglassError, match="no such file in the reference set dyck-more"):
        pipeline.load_table("dyck", "variation", root=dyck.path, reference="dyck-more")
    kept.parents[1].rename(dyck.path / "data/reference/dyck-more")
    assert pipeline.load_table("dyck", "variation", root=dyck.path, reference="dyck-more").height
    (dyck.path / "data/reference/dyck-more/record.json").write_text('{"study": "depth", "jobs": {}}')
    with pytest.raises(SandglassError, match="dyck-more holds results of depth, not of dyck"):
        pipeline.load_table("dyck", "variation", root=dyck.path, reference="dyck-more")
    with pytest.raises(
        SandglassError, match=r"is missing in .*make it there with: snakemake data/tables/dyck/var"
    ):
        pipeline.load_table("dyck", "variation", root=dyck.path)


@pytest.mark.parametrize(
    ("study", "name", "expected"),
    [
        ("dykc", "variation", "no study 'dykc' (did you mean 'dyck'?); known: depth, dyck, nce"),
        (
            "dyck",
            "varation",
            "no table of dyck 'varation' (did you mean 'variation'?); known: dyck-train-complete",
        ),
    ],
)
def test_what_is_not_there_is_one_line_with_what_is(
    smoke: Workspace, study: str, name: str, expected: str
) -> None:
    with pytest.raises(SandglassError) as error:
        pipeline.load_table(study, name, root=smoke.path)
    assert str(error.value).startswith(expected)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["variation", "dyck-probe16"])
def test_a_table_is_csv_by_one_call(smoke: Workspace, name: str, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    done = smoke.run("python", "-m", "pipeline", "export", "dyck", name, "--csv", str(target))
    assert (done.status, done.output) == (0, "")
    frame = pipeline.load_table("dyck", name, root=smoke.path)
    lists = [column for column, dtype in frame.schema.items() if dtype == pl.List]
    assert bool(lists) == (name == "dyck-probe16")
    flat = dict.fromkeys(lists, pl.String)
    read = pl.read_csv(target, schema_overrides={**frame.schema, **flat})
    back = read.with_columns(pl.col(column).str.split(" ").cast(frame.schema[column]) for column in lists)
    assert back.equals(frame)


def test_csv_goes_to_stdout_without_a_file(smoke: Workspace) -> None:
    done = smoke.run("python", "-m", "pipeline", "export", "dyck", "fig3")
    assert done.output == access.to_csv(pipeline.load_table("dyck", "fig3", root=smoke.path))


def test_csv_into_no_folder_is_one_line(smoke: Workspace) -> None:
    done = smoke.run("python", "-m", "pipeline", "export", "dyck", "variation", "--csv", "none/out.csv")
    assert (done.status, done.output) == (
        1,
        "sandglass: none/out.csv: cannot be written: No such file or directory\n",
    )


def test_pandas_takes_a_table(smoke: Workspace) -> None:
    pytest.importorskip("pandas", reason="pandas is optional: requirements-export.txt")
    frame = pipeline.load_table("dyck", "variation", root=smoke.path)
    assert frame.to_pandas().shape == frame.shape


def test_a_replica_is_the_one_that_was_analysed(smoke: Workspace) -> None:
    """Its attention on D4 is what the analysis stored of that replica."""
    stored = pipeline.load_table("dyck", "attention", root=smoke.path).filter(run="dyck-standard")
    replicas = stored["replica"].unique().sort().to_list()
    assert replicas == [0, 1]
    for replica in replicas:
        model = pipeline.load_run("dyck-standard", replica, root=smoke.path)
        patterns = model.attention_patterns(model.encode(D4))
        assert len(patterns) == 2
        for layer, pattern in enumerate(patterns, start=1):
            rows = stored.filter(pl.col("start_included"), replica=replica, layer=layer)
            query, key = rows["query"].to_numpy(), rows["key"].to_numpy()
            assert len(query) == 17 * 18 / 2
            np.testing.assert_allclose(
                pattern[0, 0].detach().numpy()[query, key], rows["weight"].to_numpy(), atol=1e-6
            )


@pytest.mark.parametrize(
    "run", ["dyck-standard", "dyck-table1-k2-d4-l3", "dyck-minimal-angle", "dyck-copy-l1"]
)
def test_logits_are_those_of_the_ensemble(smoke: Workspace, run: str) -> None:
    ensemble = transformer.load(smoke.path / graph.run_folder("dyck", run) / "model.safetensors")
    tokens = language.sample_prefixes(np.random.default_rng(0), 6, 20, k=2, max_depth=4, q=0.5)
    names = language.vocabulary(2)
    strings = ["".join(names[token] for token in row) for row in tokens]
    model = pipeline.load_run(run, replica=1, root=smoke.path)
    ids = model.encode(*strings)
    read = tokens if model.config["entry"]["embedding"] == "token" else language.symbols(tokens, 4)
    assert ids.tolist() == language.with_start(read).tolist()
    expected, _ = transformer.forward(ensemble.spec, ensemble.params, ensemble.table, ids[None])
    torch.testing.assert_close(model(ids), expected[1])
    assert model(ids).shape == (6, 21, len(model.labels))


def test_a_replica_says_what_it_is_and_can_be_trained(smoke: Workspace) -> None:
    model = pipeline.load_run("dyck-standard", replica=1, root=smoke.path)
    assert model.config["run"] == "dyck-standard"
    assert model.config["replica"] == 1
    assert model.config["entry"]["replicas"] == 2
    assert model.labels == ["[", "]", "(", ")"]
    copies = pipeline.load_run("dyck-copy-l1", replica=1, root=smoke.path)
    assert copies.labels == ["start", "[", "]", "(", ")"]
    assert set(model.state_dict()) == {"table", *transformer.shapes(model.spec)}
    model(model.encode("[]")).sum().backward()
    assert all(weight.grad is not None for weight in model.parameters())
    assert not model.table.requires_grad
    with pytest.raises(SandglassError, match=r"cannot record \['nothing'\]; this model has: blocks\.0"):
        model.record(model.encode("[]"), ["nothing"])


def test_shorter_rows_are_filled_up_at_the_end(smoke: Workspace) -> None:
    model = pipeline.load_run("dyck-minimal", root=smoke.path)
    both = model(model.encode("[()", "[(())]()"))
    torch.testing.assert_close(both[:1, :4], model(model.encode("[()")))


@pytest.mark.parametrize(
    ("strings", "expected"),
    [
        (["[{}]"], r"cannot encode '\{\}': this model reads \[\]\(\)"),
        (["[]", "[)"], r"cannot encode '\[\)': this model reads prefixes of Dyck with k=2, D=4"),
        (["[[[[["], "prefixes of Dyck"),
        ([], "nothing to encode"),
    ],
)
def test_what_cannot_be_encoded_is_one_line(smoke: Workspace, strings: list[str], expected: str) -> None:
    with pytest.raises(SandglassError, match=expected):
        pipeline.load_run("dyck-minimal", root=smoke.path).encode(*strings)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (torch.tensor([[0, -1]]), "ids must be 0 to 4, got -1 to 0"),
        (torch.tensor([[0, 5]]), "ids must be 0 to 4, got 0 to 5"),
        (torch.tensor([0, 1]), r"integers of shape \(B, T\), got torch.int64 of shape \(2,\)"),
        (torch.zeros(1, 2), r"integers of shape \(B, T\), got torch.float32"),
    ],
)
def test_ids_that_mean_nothing_are_refused(smoke: Workspace, ids: torch.Tensor, expected: str) -> None:
    with pytest.raises(SandglassError, match=expected):
        pipeline.load_run("dyck-standard", root=smoke.path)(ids)


@pytest.mark.parametrize("replica", [-1, 2, True, 0.0])
def test_a_replica_out_of_range_is_one_line(smoke: Workspace, replica: int) -> None:
    with pytest.raises(SandglassError, match=r"^run dyck-standard has replicas 0 to 1, not"):
        pipeline.load_run("dyck-standard", replica, root=smoke.path)


def test_a_run_that_is_not_there_is_one_line(dyck: Workspace) -> None:
    with pytest.raises(SandglassError, match=r"no run 'dyck-standrad' \(did you mean 'dyck-standard'\?\)"):
        pipeline.load_run("dyck-standrad", root=dyck.path)
    path = dyck.path / graph.run_folder("dyck", "dyck-standard") / "model.safetensors"
    arrays, header = checkpoints.read(path)
    checkpoints.write(path, arrays, header | {"diverged": {"0": 7}})
    with pytest.raises(
        SandglassError, match=r"replica 0 of run dyck-standard diverged at step 7 .*trained: 1$"
    ):
        pipeline.load_run("dyck-standard", root=dyck.path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SandglassError, match="is truncated or damaged"):
        pipeline.load_run("dyck-standard", root=dyck.path)
    path.unlink()
    with pytest.raises(
        SandglassError, match=r"is missing in .* make it there with: snakemake data/runs/dyck"
    ):
        pipeline.load_run("dyck-standard", root=dyck.path)


def test_a_checkpoint_that_cannot_be_read_alone_is_one_line(
    dyck: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.delattr(transformer, "forward")
        with pytest.raises(SandglassError, match=r"pipeline/models/transformer\.py, has no forward pass"):
            pipeline.load_run("dyck-standard", root=dyck.path)
    path = dyck.path / graph.run_folder("dyck", "dyck-standard") / "model.safetensors"
    checkpoints.write(path, checkpoints.read(path)[0], {})
    with pytest.raises(SandglassError, match="does not say what was trained"):
        pipeline.load_run("dyck-standard", root=dyck.path)
