"""Trainings: fresh strings and sentences, students side by side; schedules at their boundaries; answers of teachers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from workspace import load_study

from pipeline.errors import SandglassError
from pipeline.languages import parity
from pipeline.store import checkpoints, tables
from pipeline.studies.distillation import costs, datasets, labels, runs
from pipeline.studies.distillation.params import Arm, Checkpoint, Run
from pipeline.training import core, ensemble, jobs
from schemas.distillation.datasets import task

SEED = 7
CPU = torch.device("cpu")


def at_step(schedule: list[labels.Interval], step: int) -> int:
    """Return the teacher's step that answers at a step of the student."""
    (checkpoint,) = [kept for kept, start, end in schedule if start <= step < end]
    return checkpoint


def test_a_student_in_turn_starts_with_the_first_checkpoint_and_keeps_the_last() -> None:
    """(N, T): s_i = i T_0 / N, i(t) = min(floor(t / T) + 1, N) of definition 22, also beyond N T."""
    kept, arm = [25, 50, 75, 100], Arm(schedule="in_turn", each=5, tau=0, spaced="kept")
    intervals = labels.intervals(arm, kept, [], 30)
    assert [at_step(intervals, t) for t in range(30)] == [25 * min(t // 5 + 1, 4) for t in range(30)]
    assert intervals[-1] == (100, 15, 30)
    assert labels.intervals(arm, kept, [], 12)[-1] == (75, 10, 12)  # the last one is never reached
    assert labels.intervals(arm, kept, [], 15)[-1] == (75, 10, 15)
    assert labels.intervals(Arm(schedule="one_shot", tau=0), kept, [], 9) == [(100, 0, 9)]


def test_named_checkpoints_then_the_last() -> None:
    arm = Arm(schedule="intervals", each=4, tau=0, checkpoints=[Checkpoint(rule="step", value=30)] * 2)
    assert labels.intervals(arm, [100], [30, 60], 20) == [(30, 0, 4), (60, 4, 8), (100, 8, 20)]
    assert labels.intervals(arm, [100], [30, 60], 6) == [(30, 0, 4), (60, 4, 6)]


@pytest.mark.parametrize(("count", "horizon"), [(4, 20), (4, 22), (3, 20), (8, 5)])
def test_equal_split(count: int, horizon: int) -> None:
    kept = [(i + 1) * 10 for i in range(count)]
    intervals = labels.intervals(Arm(schedule="equal_split", tau=0, spaced="kept"), kept, [], horizon)
    expected = [10 * min(t * count // horizon + 1, count) for t in range(horizon)]
    assert [at_step(intervals, t) for t in range(horizon)] == expected


@pytest.mark.parametrize("kappa", [1.0, 0.5, 0.3])
@pytest.mark.parametrize("horizon", [10, 100, 130])
def test_a_share_of_the_teachers_steps_does_not_depend_on_the_horizon(kappa: float, horizon: int) -> None:
    kept, each = [25, 50, 75, 100], round(kappa * 25, 9)
    intervals = labels.intervals(Arm(schedule="share_split", kappa=kappa, tau=0, spaced="kept"), kept, [], horizon)
    assert [at_step(intervals, t) for t in range(horizon)] == [25 * min(int(t / each) + 1, 4) for t in range(horizon)]


def test_checkpoints_between_two_peaks() -> None:
    assert labels.between(np.array([1.0, 9, 1, 2, 6, 1])) == 2
    assert labels.between(np.array([1.0, 6, 2, 1, 9, 1])) == 3
    assert labels.between(np.array([1.0, 9, 8, 3, 2])) == 3  # one peak: where it has fallen below half
    assert labels.first(np.array([False, True, True])) == 1 and labels.first(np.array([False, False])) == 1


def _dataset(folder: Path, name: str) -> pl.DataFrame:
    entry = load_study("distillation").members("datasets")[name]
    path = folder / f"{name}.parquet"
    if not path.exists():
        if hasattr(entry, "teacher"):
            frame = labels.answers({name: entry}, SEED, *_trained(folder, entry.teacher))[name]
            metadata: dict[str, str] = {}
        else:
            frame, metadata = datasets.generate(entry, name, SEED)
        tables.write(frame, path, runs.DATASET_SCHEMA, metadata)
    return tables.read(path, runs.DATASET_SCHEMA)


def _job(folder: Path, member: str, **update: Any) -> jobs.TrainingJob:
    entry = load_study("distillation").members("runs")[member]
    path = folder / member / "job.safetensors"
    header, data, table = runs.prepare(entry.model_copy(update=update), _dataset(folder, entry.dataset), SEED)
    ensemble.write_job(path, header, data, table)
    return jobs.TrainingJob(path)


def _trained(folder: Path, member: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    job = _job(folder, member)
    entry = load_study("distillation").members("runs")[member]
    state = core.train_chunk(job, list(range(len(job.header.lr))), CPU)
    named = {"": state.flat} | {f"{name}.": flat for name, flat in state.snapshots.items()}
    arrays = {
        prefix + name: value.detach().numpy()
        for prefix, flat in named.items()
        for name, value in job.unflatten(flat).items()
    }
    return arrays, {"entry": entry.model_dump(), "spec": job.header.spec, "lr": job.header.lr}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trained")


@pytest.mark.parametrize(
    "member", ["distillation-narrow", "distillation-pupils-1", "distillation-gpt-2", "distillation-text-pupils-1"]
)
def test_students_of_a_number_read_the_same_and_no_input_comes_twice(folder: Path, member: str) -> None:
    job = _job(folder, member, **({"side": 2} if member == "distillation-gpt-2" else {}))
    batches = [job.batch([0], step)["x"] for step in range(4)]
    side = batches[0].shape[1]
    assert side == job.header.settings["side"] < len(job.header.settings["students"]) or side == 2
    assert all((batches[i] != batches[j]).any() for i in range(4) for j in range(i))
    assert len({own.tobytes() for own in batches[0][0]}) == side
    assert (job.batch([0], 2)["x"] == batches[2]).all()


def test_a_student_learns_what_it_would_alone(folder: Path) -> None:
    """The loss is a sum, so a student's gradient, and its weights, are those that it has without the others."""
    both = _job(folder, "distillation-teacher")
    entry = load_study("distillation").members("runs")["distillation-teacher"]
    many = both.unflatten(core.train_chunk(both, [0], CPU).flat)
    frame = _dataset(folder, entry.dataset)
    path = folder / "alone" / "job.safetensors"
    ensemble.write_job(path, *runs.prepare(entry.model_copy(update={"side": 1}), frame, SEED))
    alone = jobs.TrainingJob(path)
    one = alone.unflatten(core.train_chunk(alone, [0], CPU).flat)
    for name in one:
        torch.testing.assert_close(many[name][:, :1], one[name], atol=1e-5, rtol=1e-5)
        assert (many[name][:, 0] != many[name][:, 1]).any()


@pytest.mark.parametrize(
    ("member", "source"),
    [
        ("distillation-narrow", "distillation-accelerated"),
        ("distillation-pupils-1", "distillation-lessons-1"),
        ("distillation-endings-pupils-3-1", "distillation-endings-3-taught-1"),
        ("distillation-text-pupils-1", "distillation-text-taught-1"),
    ],
)
def test_losses_are_cross_entropies_of_each_students_targets(folder: Path, member: str, source: str) -> None:
    job = _job(folder, member)
    frame = _dataset(folder, source).filter(part="student").sort("row")
    params, step = job.unflatten(job.initial([0])), 3
    batch: dict[str, Any] = {name: torch.from_numpy(value) for name, value in job.batch([0], step).items()}
    own = torch.arange(frame.height) % job.header.settings["side"]
    extra = {name: batch[name][:, own] for name in ("visible", "places") if name in batch}
    logits = job.model.forward(job.spec, params, torch.zeros(1, 1), batch["x"][:, own], **extra)[0]
    total, classes = 0.0, logits.shape[-1]
    for row, place, mine in zip(frame.iter_rows(named=True), own.tolist(), logits[0], strict=True):
        logp = mine.double().log_softmax(-1)
        labels_of = batch["labels"][0, place]
        n_labels, count = len(labels_of), row["asked"]
        if row["soft"] is not None:
            targets = torch.tensor(row["soft"], dtype=torch.float64).view(-1, count, classes)[step, :n_labels]
        else:
            hard = labels_of if row["hard"] is None else torch.tensor(row["hard"]).view(-1, count)[step, :n_labels]
            targets = torch.nn.functional.one_hot(hard.long(), classes).double()
        losses = -(targets * logp).sum(-1)
        mask = batch["weight"][0, place] > 0 if "weight" in batch else torch.ones(n_labels, dtype=torch.bool)
        total += float(losses[mask].mean())
    metrics = job.objective.loss(lambda x, **_: (logits, {}), batch | {"step": torch.tensor(step)})
    assert float(metrics["loss"].detach()) == pytest.approx(total, rel=1e-5)


TAUGHT = [
    "distillation-accelerated",
    "distillation-candidates",
    "distillation-tokens-taught",
    "distillation-lessons-1",
    "distillation-choices-1",
    "distillation-endings-2-taught-2",
    "distillation-text-taught-3",
]


@pytest.mark.parametrize("member", TAUGHT)
def test_answers_are_those_of_the_scheduled_checkpoint(folder: Path, member: str) -> None:
    """Each answer against the teacher's forward pass on that input alone, at the checkpoint of that step."""
    entry = load_study("distillation").members("datasets")[member]
    frame = _dataset(folder, member).filter(part="student").sort("row")
    arrays, header = _trained(folder, entry.teacher)
    student = next(key for key, run in load_study("distillation").members("runs").items() if run.dataset == member)
    job, checked = _job(folder, student), 0
    for row in frame.iter_rows(named=True):
        if row["schedule"] is None:
            continue
        assert row["schedule"][0]["start"] == 0 and row["schedule"][-1]["end"] == entry.steps
        own = row["row"] % entry.side
        for part in row["schedule"]:
            prefix = "" if part["checkpoint"] == header["entry"]["steps"] else f"step{part['checkpoint']}."
            spec = job.model.Spec(**header["spec"] | {"side": 1})
            weights = {
                name: torch.from_numpy(arrays[prefix + name][:, row["teacher"]].copy())[:, None]
                for name in job.model.shapes(spec)
            }
            for step in {part["start"], part["end"] - 1}:
                batch = {name: torch.from_numpy(array) for name, array in job.batch([0], step).items()}
                x, place = batch["x"][:, own : own + 1], 0
                extra: dict[str, Any] = {}
                if "places" in batch:
                    place = int(batch["weight"][0, own].sum()) - 1  # the last that is asked for
                    string, at = divmod(int(batch["places"][0, own, place]), x.shape[-1])
                    extra["places"] = torch.tensor([[[at]]])
                    x = x[:, :, string : string + 1]
                    if "visible" in batch:
                        extra["visible"] = batch["visible"][:, own : own + 1, string : string + 1]
                else:
                    x = x[:, :, :1]
                logits = job.model.forward(spec, weights, torch.zeros(1, 1), x, **extra)[0][0, 0, 0]
                first, K = step * row["asked"] + place, logits.shape[-1]
                if row["tau"] == 0:
                    assert row["hard"][first] == int(logits.argmax())
                else:
                    expected = (logits / row["tau"]).softmax(-1).numpy()
                    np.testing.assert_allclose(row["soft"][K * first : K * first + K], expected, atol=1e-4)
                checked += 1
    assert checked > len(entry.arms)


def test_answers_are_kept_in_a_type_that_a_gpu_can_index(folder: Path) -> None:
    """Torch has no index of unsigned 16-bit numbers there: students of stored answers trained on a CPU alone."""
    job = _job(folder, "distillation-pupils-1")
    hard = checkpoints.read(job.path)[0]["hard"]
    assert job.objective.answers["hard"].dtype == torch.int16
    np.testing.assert_array_equal(job.objective.answers["hard"].numpy(), hard)


@pytest.mark.parametrize("member", ["distillation-pupils-1", "distillation-endings-pupils-2-2"])
def test_answers_while_students_train_are_those_that_are_stored(folder: Path, member: str) -> None:
    """The loss of each step with the teacher's weights in the job is that with its answers, for all schedules."""
    stored = _job(folder, member)
    entry = load_study("distillation").members("runs")[member]
    source = load_study("distillation").members("datasets")[entry.dataset].model_copy(update={"streamed": True})
    frame = labels.answers({entry.dataset: source}, SEED, *_trained(folder, source.teacher))[entry.dataset]
    path = folder / f"{entry.dataset}-streamed.parquet"
    tables.write(frame, path, runs.DATASET_SCHEMA, {})
    frame = tables.read(path, runs.DATASET_SCHEMA)
    students = frame.filter(part="student")
    assert students["hard"].null_count() == students["soft"].null_count() == students.height
    path = folder / f"{member}-streamed" / "job.safetensors"
    ensemble.write_job(path, *runs.prepare(entry, frame, SEED))
    job = jobs.TrainingJob(path)
    assert job.header.objective == "distillation_streamed"
    forward = core._forward(job, job.unflatten(job.initial([0])), torch.zeros(1, 1))
    losses = set()
    for step in range(entry.steps):
        batch = {name: torch.from_numpy(array) for name, array in job.batch([0], step).items()}
        batch["step"] = torch.tensor(step)
        own, other = (each.objective.loss(forward, batch) for each in (job, stored))
        torch.testing.assert_close(own, other, atol=1e-4, rtol=1e-5)
        losses.add(round(float(own["loss"]), 3))
    assert len(losses) > 1
    with pytest.raises(SandglassError, match=r"answers steps .*; the run has 99"):
        runs.prepare(entry.model_copy(update={"steps": 99}), frame, SEED)


def test_what_answers_take_is_said_before_they_are_made(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sizes of the chapter: a step of 512 sentences of cfg3b asks 42,336 tokens, its longest horizon 136 GiB."""
    members = load_study("distillation", "paper").members("datasets")
    entry = members["distillation-lessons-4"]
    assert entry.streamed and costs.asked(entry) == pytest.approx(512 * 275.625 * 0.3)
    assert costs.said(costs.answer_bytes(entry)) == "136.3 GiB"
    assert "42,336 answers a step" in costs.of_answers(entry) and "136.3 GiB" in costs.of_answers(entry)
    stored = load_study("distillation").members("datasets")["distillation-accelerated"]
    students = _dataset(folder, "distillation-accelerated").filter(part="student")
    kept = sum(costs.HARD * len(row) for row in students["hard"].drop_nulls())
    kept += sum(costs.REAL * len(row) for row in students["soft"].drop_nulls())
    assert costs.answer_bytes(stored) == kept
    _job(folder, "distillation-pupils-unseen")
    assert "checkpoints of" in capsys.readouterr().err


def _teachers(folder: Path, member: str) -> labels.Teachers:
    entry = load_study("distillation").members("datasets")[member]
    arrays, header = _trained(folder, entry.teacher)
    columns = {"bits": parity.sample(np.random.default_rng(0), (50,), entry.d)}
    columns["label"] = parity.labels(columns["bits"], entry.k, 1)  # type: ignore[assignment]
    task_fields = task(entry)
    return labels.Teachers(entry, arrays, header, task_fields, columns, SEED)


def test_checkpoints_are_chosen_by_accuracy_and_loss(folder: Path) -> None:
    teachers = _teachers(folder, "distillation-candidates")
    teachers._curves[0] = (np.array([0.5, 0.54, 0.7, 0.8, 1.0]), np.array([9.0, 1.0, 0.55, 0.3, 0.1]))
    assert teachers.kept == [0, 10, 20, 30, 40]
    chosen = {
        "reaches": Checkpoint(rule="reaches", value=0.75),
        "never": Checkpoint(rule="reaches", value=1.1),
        "before": Checkpoint(rule="before", value=0.55, of=0.75, gap=2),
        "step": Checkpoint(rule="step", value=20),
        "inflection": Checkpoint(rule="inflection"),  # (1 - 0.1) / 2 is behind it
    }
    steps = {name: teachers.step(0, checkpoint) for name, checkpoint in chosen.items()}
    assert steps == {"reaches": 30, "never": 40, "before": 10, "step": 20, "inflection": 20}
    assert teachers.spaced(0, "inflection") == [20, 40] and teachers.spaced(0, "kept") == [10, 20, 30, 40]
    teachers._curves[0] = (np.zeros(5), np.array([9.0, 1.0, 0.9, 0.5, 0.1]))
    assert teachers.spaced(0, "inflection") == [30, 40]  # the last one is always among them
    with pytest.raises(SandglassError, match="kept no weights after 15 steps"):
        teachers.step(0, Checkpoint(rule="step", value=15))


def test_a_loss_that_does_not_fall_has_an_inflection_too() -> None:
    steps = np.array([0, 10, 20, 30])
    assert labels.inflection(steps, np.array([5.0, 1.0, 1.0, 1.0])) == 1
    assert labels.inflection(steps, np.array([5.0, 1.0, 1.1, 1.2])) == 1


def test_what_several_schedules_ask_of_a_checkpoint_is_answered_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six arms that begin with the same checkpoint and end with the same one cost as much as their union."""
    seen: list[tuple[int, int, int]] = []
    plain = labels.Teachers.logits

    def counted(self: labels.Teachers, number: int, step: int, inputs: Any) -> torch.Tensor:
        seen.append((number, step, len(inputs.x)))
        return plain(self, number, step, inputs)

    monkeypatch.setattr(labels.Teachers, "logits", counted)
    entry = load_study("distillation").members("datasets")["distillation-candidates"]
    arrays, header = _trained(folder, entry.teacher)
    labels.answers({"x": entry}, SEED, arrays, header)
    counts = [n for _, _, n in seen if n not in (entry.held, entry.correlated)]
    assert sum(counts) <= entry.side * 4 * entry.steps * entry.batch  # four different checkpoints at most


def test_datasets_of_several_horizons_are_answered_together_as_they_are_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = load_study("distillation").members("datasets")
    entries = {f"distillation-lessons-{place}": members[f"distillation-lessons-{place}"] for place in (3, 1, 2)}
    trained = _trained(folder, "distillation-bert")
    alone = {key: labels.answers({key: entry}, SEED, *trained)[key] for key, entry in entries.items()}
    drawn: list[int] = []
    plain = labels.objective.draw
    monkeypatch.setattr(labels.objective, "draw", lambda *rest: drawn.append(1) or plain(*rest))
    together = labels.answers(entries, SEED, *trained)
    assert list(together) == list(entries)
    assert len(drawn) == max(entry.steps for entry in entries.values())
    for key, expected in alone.items():
        assert together[key].drop("soft").equals(expected.drop("soft"), null_equal=True)
        soft = (frame["soft"].drop_nulls().explode().to_numpy() for frame in (together[key], expected))
        np.testing.assert_allclose(*soft, atol=1e-5)


def test_training_goes_on_where_it_was_interrupted(folder: Path, tmp_path: Path) -> None:
    job = _job(folder, "distillation-narrow")
    whole = core.train_chunk(job, [0], CPU)

    def stop(step: int) -> None:
        if step == 11:
            raise InterruptedError

    path = tmp_path / "partial.safetensors"
    with pytest.raises(InterruptedError):
        core.train_chunk(job, [0], CPU, path, stop, checkpoint_seconds=0.0)
    rest = core.train_chunk(jobs.TrainingJob(job.path), [0], CPU, path)
    assert path.is_file() and (rest.flat == whole.flat).all()


def test_a_run_that_does_not_fit_its_answers_is_refused(folder: Path) -> None:
    for name, value in (("batch", 9), ("steps", 80), ("side", 3), ("replicas", 2)):
        with pytest.raises(SandglassError, match=f"answers {name} .*; the run has {value}"):
            _job(folder, "distillation-narrow", **{name: value})
    with pytest.raises(SandglassError, match="a teacher cannot learn from dataset"):
        _job(folder, "distillation-narrow", role="teacher")


def test_several_mlps_in_a_replica_are_not_clipped() -> None:
    """They have one gradient together, whose norm would bound each of them by the others'."""
    given = load_study("distillation", "quick").members("runs")["distillation-narrow"].model_dump(exclude_none=True)
    assert Run(**given | {"role": "teacher", "side": 1, "clip": 1.0}).clip == 1
    assert Run(**given | {"side": 2, "clip": 0.0}).side == 2
    for changes in ({"role": "teacher", "side": 2}, {"side": 1}):  # students of all arms are in one replica
        with pytest.raises(ValueError, match="clip must be 0 for students, one of each arm, and side 1 for a teacher"):
            Run(**given | changes | {"clip": 1.0})


def test_paper_size_builds_and_takes_a_step(tmp_path: Path) -> None:
    """The published widths: a teacher of 50,000 hidden units, and Transformers with 32 heads, on whole sentences."""
    loaded = load_study("distillation", "paper")
    teachers = ("distillation-teacher", "distillation-attention", "distillation-tree-teacher")
    for member in (*teachers, "distillation-bert", "distillation-gpt-4", "distillation-reader"):
        entry = loaded.members("runs")[member]
        source = loaded.members("datasets")[entry.dataset]
        source = source.model_copy(update={"held": 4})
        frame, _ = datasets.generate(source, entry.dataset, SEED)
        few = {"side": 1, "steps": 1, "warmup": 0, "snapshots_every": 0, "log_every": 1, "batch": 2}
        path = tmp_path / member / "job.safetensors"
        ensemble.write_job(path, *runs.prepare(entry.model_copy(update=few), frame, SEED))
        job = jobs.TrainingJob(path)
        state = core.train_chunk(job, [0], CPU)
        assert (state.diverged_at == -1).all() and torch.isfinite(state.flat).all()
        if member == "distillation-teacher":
            assert state.flat.shape[1] == 5_150_002  # 100 signs, 50,000 units, 2 classes
        if member == "distillation-bert":
            assert job.spec.t_max == 433 and job.spec.width == 256
