"""Results from Python: what `pipeline.load_table` and `pipeline.load_run` give, and what they refuse."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from workspace import REPOSITORY, STUDIES, Workspace

import pipeline
from pipeline import access
from pipeline import params as parameters
from pipeline.access.replica import Replica
from pipeline.errors import SandglassError
from pipeline.languages import dyck as language
from pipeline.languages.automata import task
from pipeline.models.transformer import decoder as transformer
from pipeline.store import checkpoints, paths, tables

D4 = "[[[[]]]](((())))"


def _checkpoint(workspace: Workspace, run: str) -> Path:
    group = parameters.load(workspace.path).owner("runs", run)
    return workspace.path / paths.checkpoint_path(group.study, group.id, run)


def test_importing_the_package_imports_nothing_but_its_arithmetic() -> None:
    """Every step imports it, on machines that have little more than torch, and before numpy is loaded."""
    code = (
        "import sys; before = set(sys.modules); import pipeline; print(*set(sys.modules) - before); "
        "print(pipeline.load_table.__module__)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    loaded, module = done.stdout.splitlines()
    packages = {module.split(".")[0] for module in loaded.split()} - sys.stdlib_module_names
    assert packages == {"pipeline"}
    assert {module for module in loaded.split() if "pipeline." in module} == {"pipeline.arithmetic"}
    assert module == "pipeline.access"
    with pytest.raises(AttributeError, match="no attribute 'load_tabel'"):
        getattr(pipeline, "load_" + "tabel")


def _rows(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    """Its rows in an order that depends on nothing but them."""
    return sorted(frame.select(sorted(frame.columns)).rows(), key=repr)


@pytest.mark.parametrize("study", STUDIES)
def test_every_table_that_no_analysis_makes_is_what_its_files_hold(study: str, smoke: Workspace) -> None:
    root = smoke.path
    experiments = parameters.load(root).of_study("experiments", study)
    of_analyses = {name for each in experiments.values() for name in each.tables}
    names = pipeline.list_tables(study, root=root)
    others = {"claims", "theory", "curves", *parameters.load(root).members("datasets", study)}
    assert set(names) == others | of_analyses
    for name in others - of_analyses:
        frame = pipeline.load_table(study, name, root=root)
        places = {
            "claims": f"claims/{study}/claims.parquet",
            "theory": f"theory/{study}/*.parquet",
            "curves": f"runs/{study}/*/curves.parquet",
        }
        files = (root / "data").glob(places.get(name, f"datasets/{study}/*/{name}.parquet"))
        whole = pl.concat(map(pl.read_parquet, files), how="diagonal")
        assert _rows(frame) == _rows(whole), name


@pytest.mark.parametrize("study", STUDIES)
def test_a_table_of_experiments_is_read_whole_or_by_one(study: str, smoke: Workspace) -> None:
    """As its files hold it, of which there are no others."""
    root = smoke.path
    experiments = parameters.load(root).of_study("experiments", study)
    for name in {name for each in experiments.values() for name in each.tables}:
        makers = [key for key, each in experiments.items() if name in each.tables]
        parts = [pipeline.load_table(study, name, experiment=key, root=root) for key in makers]
        assert pl.concat(parts).equals(pipeline.load_table(study, name, root=root))
        files = {key: root / f"data/tables/{study}/{key}/{name}.parquet" for key in makers}
        assert {*root.glob(f"data/tables/{study}/*/{name}.parquet")} == {*files.values()}
        for key, part in zip(makers, parts, strict=True):
            assert part.equals(pl.read_parquet(files[key]))


@pytest.mark.study("dyck")
@pytest.mark.parametrize(
    ("name", "experiment", "message"),
    [
        ("readings", "dyck-prefix", "experiment dyck-prefix makes no table 'readings': dyck-readings make one"),
        ("claims", "dyck-prefix", "experiment dyck-prefix makes no table 'claims': it is one of the whole study"),
        ("runs", "dyck-prefx", r"no experiment of dyck 'dyck-prefx'; did you mean dyck-prefix"),
    ],
)
def test_an_experiment_without_the_table_is_one_line(
    name: str, experiment: str, message: str, smoke: Workspace
) -> None:
    with pytest.raises(SandglassError, match=f"^{message}"):
        pipeline.load_table("dyck", name, experiment=experiment, root=smoke.path)


def test_curves_of_runs_with_other_metrics_are_one_table(smoke: Workspace) -> None:
    curves = pipeline.load_table("nce", "curves", root=smoke.path)
    assert {"nce-digits-full-nce-gd", "nce-digits-full-nce-ngd"} <= set(curves["run"])
    assert {"gradient_norm", "skipped"} <= set(curves.columns)
    assert curves.filter(pl.col("run").str.ends_with("-ngd"))["skipped"].null_count() == 0


@pytest.mark.study("dyck")
def test_the_work_tree_is_found_from_below_it(smoke: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(smoke.path / "data/tables/dyck")
    assert pipeline.load_table("dyck", "variation")["scale"].unique().to_list() == ["smoke"]


def test_without_a_work_tree_around_it_is_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert pipeline.list_runs() == pipeline.list_runs(root=REPOSITORY) > pipeline.list_runs("dyck")
    with pytest.raises(SandglassError, match=r"holds no params\.yaml"):
        pipeline.list_runs(root=tmp_path)


def test_a_reference_set_is_read_in_place_of_what_was_built(dyck: Workspace) -> None:
    with pytest.raises(SandglassError, match="no reference set 'dyck'"):
        pipeline.load_table("dyck", "variation", root=dyck.path, reference=True)
    whole = pipeline.load_table("dyck", "variation", root=dyck.path)
    own = parameters.load(dyck.path).of_study("experiments", "dyck")
    for key in (key for key, each in own.items() if "variation" in each.tables):
        kept = dyck.path / f"data/reference/dyck/tables/{key}/variation.parquet"
        kept.parent.mkdir(parents=True)
        shutil.move(dyck.path / f"data/tables/dyck/{key}/variation.parquet", kept)
    assert pipeline.load_table("dyck", "variation", root=dyck.path, reference=True).equals(whole)
    part = pl.read_parquet(kept)
    (kept.parents[2] / "tables/variation.parquet").write_bytes(b"of no use beside these")
    table = pipeline.load_table("dyck", "variation", root=dyck.path, reference=True, experiment=key)
    assert table.equals(part)
    with pytest.raises(SandglassError, match="no such file in the reference set dyck"):
        pipeline.load_table("dyck", "stack_cells", root=dyck.path, reference=True)
    former = kept.with_name("contrasts.parquet")  # a table that the study makes no more
    shutil.copy(kept, former)
    assert pipeline.load_table("dyck", "contrasts", root=dyck.path, reference=True).height == table.height
    with pytest.raises(SandglassError, match="contrasts"):
        pipeline.load_table("dyck", "contrasts", root=dyck.path)
    with pytest.raises(SandglassError, match="no reference set 'dyck-more'; did you mean dyck"):
        pipeline.load_table("dyck", "variation", root=dyck.path, reference="dyck-more")
    kept.parents[2].rename(dyck.path / "data/reference/dyck-more")
    assert pipeline.load_table("dyck", "variation", root=dyck.path, reference="dyck-more").equals(whole)
    (dyck.path / "data/reference/dyck-more/record.json").write_text('{"study": "depth", "jobs": {}}')
    with pytest.raises(SandglassError, match="dyck-more holds results of depth, not of dyck"):
        pipeline.load_table("dyck", "variation", root=dyck.path, reference="dyck-more")
    ways = "fetch it with: dvc pull --allow-missing, or make it there with: snakemake data/tables/dyck/dyck-.*/var"
    with pytest.raises(SandglassError, match=f"is missing in .*: {ways}"):
        pipeline.load_table("dyck", "variation", root=dyck.path)


def test_a_reference_set_of_the_old_layout_is_read(dyck: Workspace) -> None:
    """One file holds the rows of all experiments; claims lack the columns that came later."""
    whole = pipeline.load_table("dyck", "variation", root=dyck.path)
    claims = pipeline.load_table("dyck", "claims", root=dyck.path)
    folder = dyck.path / "data/reference/dyck"
    tables.store(whole, folder / "tables/variation.parquet")
    tables.store(claims.drop("bound", "published_high"), folder / "claims/claims.parquet")
    assert pipeline.load_table("dyck", "variation", root=dyck.path, reference=True).equals(whole)
    old = pipeline.load_table("dyck", "claims", root=dyck.path, reference=True)
    assert old.columns == claims.columns and old["published_high"].null_count() == old.height
    assert old.drop("bound", "published_high").equals(claims.drop("bound", "published_high"))


@pytest.mark.parametrize(
    ("study", "name", "expected"),
    [
        ("dykc", "variation", "no study 'dykc'; did you mean dyck?"),
        ("dyck", "varation", "no table of dyck 'varation'; did you mean variation"),
        ("dyck", "q", "no table of dyck 'q'; there are "),
    ],
)
def test_what_is_not_there_is_one_line_with_what_is(smoke: Workspace, study: str, name: str, expected: str) -> None:
    with pytest.raises(SandglassError) as error:
        pipeline.load_table(study, name, root=smoke.path)
    assert str(error.value).startswith(expected)
    assert "\n" not in str(error.value)


@pytest.mark.study("dyck")
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


@pytest.mark.study("dyck")
def test_csv_goes_to_stdout_without_a_file(smoke: Workspace) -> None:
    done = smoke.run("python", "-m", "pipeline", "export", "dyck", "fig3")
    assert done.output == access.to_csv(pipeline.load_table("dyck", "fig3", root=smoke.path))


@pytest.mark.study("dyck")
def test_csv_into_no_folder_is_one_line(smoke: Workspace) -> None:
    done = smoke.run("python", "-m", "pipeline", "export", "dyck", "variation", "--csv", "none/out.csv")
    assert (done.status, done.output) == (2, "sandglass: none/out.csv: cannot be written: No such file or directory\n")


@pytest.mark.study("dyck")
def test_pandas_takes_a_table(smoke: Workspace) -> None:
    pytest.importorskip("pandas", reason="pandas is optional: requirements-export.txt")
    frame = pipeline.load_table("dyck", "variation", root=smoke.path)
    assert frame.to_pandas().shape == frame.shape


def _read_by(model: Replica) -> torch.Tensor:
    """Two inputs that the model reads, whatever its study."""
    if model.config["study"] == "automata":
        symbol = task(model.config["entry"]["task"]).automaton.symbols[0]
        return model.encode(symbol, symbol)
    if model.config["study"] == "flipflop":
        read = {"strings": ("w1", "w0"), "automaton": ("1-", "0-"), "stories": ("The light", "The lamp")}
        return model.encode(*read[model.config["entry"]["task"]])
    if model.config["study"] == "distillation":
        if model.config["entry"]["language"] == "pcfg":
            return model.encode("12_3", "3_11")
        length = getattr(model.spec, "t_max", model.spec.inputs)
        return model.encode("+" * length, "-" * length)
    if model.config["study"] == "dyck":
        return model.encode("[]", "[[")
    if model.config["study"] == "verifier":
        return model.encode("B def", "B NL") if model.config["entry"]["task"] == "cases" else model.encode("([", "()")
    if model.config["study"] == "selfsup":
        return model.encode((0.5, 1.0), (1.0, 2.0)) if "pair" in model.config["entry"]["model"] else model.encode(0, 1)
    if model.config["study"] == "parallel":
        spins, k = getattr(model.spec, "spins", 0), model.config["entry"].get("k", 0)
        read = {
            "ising/pairwise": ("+" * spins, "-" * spins),
            "ising/transformer": [("_" * k + "+" * (spins - k), start + "+" * (spins - 1)) for start in "+-"],
            "parallel/translator": [([0, 4], [2, 5, 1]), ([3], [5, 1])],
        }
        return model.encode(*read[model.config["entry"]["model"]])
    if hasattr(model.spec, "side"):
        return model.encode(*np.zeros((2, model.spec.side**2), dtype=np.int64))
    if hasattr(model.spec, "length"):
        return torch.zeros(2, model.spec.length, dtype=torch.int64)
    return model.encode("1 2", "2 1")


@pytest.mark.parametrize("study", STUDIES)
def test_every_run_of_every_study_is_loaded_by_its_id(study: str, smoke: Workspace) -> None:
    root = smoke.path
    members = parameters.load(root).members("runs", study)
    assert pipeline.list_runs(study, root=root) == list(members)
    for run, entry in members.items():
        if not entry.replicas:
            with pytest.raises(SandglassError, match=f"run {run} has no replicas at this scale"):
                pipeline.load_run(run, root=root)
            continue
        model = pipeline.load_run(run, root=root)
        assert model.config["run"] == run
        inputs = _read_by(model)
        with torch.inference_mode():
            outputs = model(inputs)
        assert outputs.shape[study == "distillation"] == 2  # there several models side by side come first
        assert bool(outputs.isfinite().all())
        assert len(model.labels) == (1 if outputs.ndim == 1 else outputs.shape[-1])
        with pytest.raises(SandglassError):
            model(inputs[0])


def test_a_model_of_images_says_what_it_reads(smoke: Workspace) -> None:
    """It is no sequence model: what a user gives or asks for as of one is refused in one line that says what it is."""
    root = smoke.path
    model = pipeline.load_run("nce-digits-full-nce-gd", root=root)
    pixels = pipeline.load_table("nce", "nce-digits", root=root)["pixels"].head(3).to_numpy()
    images = model.encode(*pixels)
    log_ratios, recorded = model.record(images, ["features"])
    assert images.shape == (3, 64) and log_ratios.shape == (3,)
    assert recorded["features"].shape == (3, model.spec.features)
    torch.testing.assert_close(model(images[1:2]), log_ratios[1:2])
    assert model.labels == ["log-ratio of the densities of images and noise"]
    for refused, message in (
        (lambda: model.encode("[[]]"), r"cannot encode '\[\[\]\]': models of this run read images"),
        (lambda: model(torch.zeros(2, 5, dtype=torch.int64)), r"images must be real numbers of shape \(B, 64\)"),
        (lambda: model.attention_patterns(images), "its model, log_ratio/resnet, has no attention"),
        (lambda: model.record(images, ["blocks.0"]), "no activation blocks.0; there is: features"),
    ):
        with pytest.raises(SandglassError, match=message):
            refused()


@pytest.mark.study("depth")
def test_a_model_that_reads_numbers_says_so(smoke: Workspace) -> None:
    model = pipeline.load_run("depth-sc-l1", root=smoke.path)
    with pytest.raises(SandglassError, match="models of this study read numbers of tokens, not 'abc'"):
        model.encode("abc")


@pytest.mark.study("dyck")
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
            np.testing.assert_allclose(pattern[0, 0].detach().numpy()[query, key], rows["weight"].to_numpy(), atol=1e-6)


@pytest.mark.study("dyck")
@pytest.mark.parametrize("run", ["dyck-standard", "dyck-table1-k2-d4-l3", "dyck-minimal-angle", "dyck-copy-l1"])
def test_logits_are_those_of_the_ensemble(smoke: Workspace, run: str) -> None:
    ensemble = transformer.load(_checkpoint(smoke, run))
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


@pytest.mark.study("dyck")
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


@pytest.mark.study("dyck")
def test_shorter_rows_are_filled_up_at_the_end(smoke: Workspace) -> None:
    model = pipeline.load_run("dyck-minimal", root=smoke.path)
    both = model(model.encode("[()", "[(())]()"))
    torch.testing.assert_close(both[:1, :4], model(model.encode("[()")))


@pytest.mark.study("dyck")
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


@pytest.mark.study("dyck")
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


@pytest.mark.study("dyck")
@pytest.mark.parametrize("replica", [-1, 2, True, 0.0])
def test_a_replica_out_of_range_is_one_line(smoke: Workspace, replica: int) -> None:
    with pytest.raises(SandglassError, match=r"^run dyck-standard has replicas 0 to 1, not"):
        pipeline.load_run("dyck-standard", replica, root=smoke.path)


@pytest.mark.slow
def test_what_docs_name_is_there_after_one_import() -> None:
    text = (REPOSITORY / "docs/python.md").read_text(encoding="utf-8")
    names = sorted({*re.findall(r"\bpipeline((?:\.\w+)+)\(", text)})
    assert ".access.export.to_hooked_transformer" in names and ".load_run" in names
    code = "import pipeline; " + "; ".join(f"pipeline{name}" for name in names)
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_run_that_is_not_there_is_one_line(dyck: Workspace) -> None:
    with pytest.raises(SandglassError, match=r"'dyck-table1' trains several models; load one: dyck-table1-k2-d4-l2,"):
        pipeline.load_run("dyck-table1", root=dyck.path)
    with pytest.raises(SandglassError, match=r"no run 'dyck-standrad'; did you mean dyck-standard"):
        pipeline.load_run("dyck-standrad", root=dyck.path)
    with pytest.raises(SandglassError, match=r"^no run 'q'; there are \d+: list_runs\(\)$"):
        pipeline.load_run("q", root=dyck.path)
    path = _checkpoint(dyck, "dyck-standard")
    arrays, header = checkpoints.read(path)
    checkpoints.write(path, arrays, header | {"diverged": {"0": 7}})
    with pytest.raises(SandglassError, match=r"replica 0 of run dyck-standard diverged at step 7 .*trained: 1$"):
        pipeline.load_run("dyck-standard", root=dyck.path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SandglassError, match="is truncated or damaged"):
        pipeline.load_run("dyck-standard", root=dyck.path)
    path.unlink()
    with pytest.raises(SandglassError, match=r"is missing in .* make it there with: snakemake data/runs/dyck"):
        pipeline.load_run("dyck-standard", root=dyck.path)


def test_a_checkpoint_that_cannot_be_read_alone_is_one_line(dyck: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.delattr(transformer, "forward")
        with pytest.raises(SandglassError, match=r"pipeline/models/transformer/decoder\.py, has no forward pass"):
            pipeline.load_run("dyck-standard", root=dyck.path)
    path = _checkpoint(dyck, "dyck-standard")
    checkpoints.write(path, checkpoints.read(path)[0], {})
    with pytest.raises(SandglassError, match="does not say what was trained"):
        pipeline.load_run("dyck-standard", root=dyck.path)
