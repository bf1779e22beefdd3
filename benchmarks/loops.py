"""``python benchmarks/loops.py``: the trainer beside the plainest loop of PyTorch, on the MLPs of the parity study.

For each width, batch, optimiser and number of models: milliseconds per step and model of our trainer, of the models
side by side, and of a loop as the authors' release has it (a module of two linear layers, a loss, ``backward`` and
``step`` of `torch.optim`) for one model after the other. One thread; repeats are interleaved; both draw their examples
at every step. Writes benchmarks/LOOPS.md.
"""

from __future__ import annotations

import itertools
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import bench  # noqa: E402

from pipeline import params  # noqa: E402
from pipeline.engine import preload  # noqa: E402
from pipeline.studies.distillation import datasets, runs  # noqa: E402
from pipeline.training import core, ensemble, jobs  # noqa: E402

RESULTS = ROOT / "benchmarks/LOOPS.md"
SIZES = ((300, 32), (2000, 32), (10_000, 100), (50_000, 100))  # width, signs: 0.01, 0.07, 1.0 and 5.1 million weights
BATCHES, MODELS = (1, 8, 128), (1, 3)
OPTIMISERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
STEPS, REPEATS = 20, 5


def job(folder: Path, width: int, signs: int, batch: int, optimiser: str, models: int) -> jobs.TrainingJob:
    """Return a job of the parity study's teachers: ``models`` of them side by side."""
    loaded = params.load(ROOT, "quick")
    source = loaded.members("datasets")["distillation-parity"]
    source = source.model_copy(update={"d": signs, "held": 10})
    adam = {"betas": [0.9, 0.999], "eps": 1e-8} if optimiser == "adam" else {}
    changed = {"width": width, "batch": batch, "optimizer": optimiser, "lr": [0.001], "side": 1, "replicas": models}
    entry = loaded.members("runs")["distillation-teacher"].model_copy(update=changed | adam)
    frame, _ = datasets.generate(source, entry.dataset, loaded.seed)
    path = folder / f"{width}-{batch}-{optimiser}-{models}.safetensors"
    ensemble.write_job(path, *runs.prepare(entry, frame, loaded.seed))
    return jobs.TrainingJob(path)


def ours(job: jobs.TrainingJob, models: int) -> Callable[[int], None]:
    """Return a round of steps of the trainer, as `pipeline.training.core.train_chunk` takes them."""
    replicas = list(range(models))
    state = jobs.State.fresh(job, job.initial(replicas))
    table, rate = torch.from_numpy(job.table), torch.full((models, 1), 0.001)
    sums = {name: torch.zeros(models) for name in job.averaged}

    def steps(_: int) -> None:
        first = state.step
        for arrays in [job.batch(replicas, first + step) for step in range(STEPS)]:
            batch = {name: torch.from_numpy(array) for name, array in arrays.items()}
            batch["step"] = torch.tensor(state.step)
            metrics = core._step(job, state, table, batch, rate)
            torch._foreach_add_(list(sums.values()), [metrics[name] for name in sums])
            state.step += 1

    return steps


def plain(width: int, signs: int, batch: int, optimiser: str, models: int) -> Callable[[int], None]:
    """Return as many steps of the plain loop: one model after the other."""
    generator = np.random.default_rng(0)
    modules = [
        torch.nn.Sequential(torch.nn.Linear(signs, width), torch.nn.ReLU(), torch.nn.Linear(width, 2))
        for _ in range(models)
    ]
    updates = [OPTIMISERS[optimiser](module.parameters(), lr=0.001) for module in modules]

    def steps(_: int) -> None:
        for module, update in zip(modules, updates, strict=True):
            for _ in range(STEPS):
                x = torch.from_numpy(generator.choice([-1.0, 1.0], (batch, signs)).astype(np.float32))
                y = (x[:, :6].prod(1) > 0).long()
                loss = torch.nn.functional.cross_entropy(module(x), y)
                update.zero_grad()
                loss.backward()
                update.step()

    return steps


def main() -> None:
    """Measure all rows, print them as a Markdown table, and keep it."""
    torch.set_num_threads(1)
    preload.keep_large_blocks()  # for both: they share the process
    lines = [
        "# The trainer beside a plain loop",
        "",
        "`python benchmarks/loops.py` writes this file: milliseconds per step and model, medians of repeats in turn,",
        f"on {platform.machine()}, torch {torch.__version__}, one thread.",
        "",
        "The ratio says how many times as fast ours is. Ours also takes the norm of each gradient, which is recorded",
        "for SGD and shows whether a model has diverged: one more read of the gradient, most noticed beside SGD's few.",
        "",
        "| width | signs | batch | optimiser | models | ours | plain | ratio |",
        "|---:|---:|---:|---|---:|---:|---:|---:|",
    ]
    print("\n".join(lines))
    with tempfile.TemporaryDirectory() as folder:
        for (width, signs), batch, optimiser, models in itertools.product(SIZES, BATCHES, OPTIMISERS, MODELS):
            made = job(Path(folder), width, signs, batch, optimiser, models)
            both = {"ours": ours(made, models), "plain": plain(width, signs, batch, optimiser, models)}
            seconds = bench.interleaved(both, REPEATS)
            our, their = (seconds[name] * 1e3 / (STEPS * models) for name in ("ours", "plain"))
            cells = (f"{width:,}", signs, batch, optimiser, models, f"{our:.3f}", f"{their:.3f}", f"{their / our:.2f}")
            lines.append(f"| {' | '.join(map(str, cells))} |")
            print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
