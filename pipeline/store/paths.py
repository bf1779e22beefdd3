"""Where each result lies, relative to the root of the repository: ``data/<kind>/<study>/<id>/…``.

``entry`` is an id of ``params/<study>/``; ``member`` is one of its variants, or the same id where it has none.
"""

from __future__ import annotations

from pathlib import Path

DATA = Path("data")
REFERENCE = DATA / "reference"  # one folder per frozen set of results (`pipeline.references`)
REPORT = DATA / "report"
WORK = Path(".work")  # resume checkpoints, git-ignored
TRAINED_ON = "trained-on.json"  # beside those of a run that another machine trained: which one
FIGURE_SUFFIXES = ("vl.json", "parquet", "svg")


def dataset_folder(study: str, entry: str) -> Path:
    """Return the folder that a dataset job makes."""
    return DATA / "datasets" / study / entry


def dataset_path(study: str, entry: str, member: str) -> Path:
    """Return the table of one dataset."""
    return dataset_folder(study, entry) / f"{member}.parquet"


def run_folder(study: str, entry: str) -> Path:
    """Return the folder that a training job makes: a checkpoint for each member, and ``curves.parquet``."""
    return DATA / "runs" / study / entry


def checkpoint_path(study: str, entry: str, member: str) -> Path:
    """Return the checkpoint of one member of a run: the parameters of all its replicas."""
    return run_folder(study, entry) / f"{member}.safetensors"


def curves_path(study: str, entry: str) -> Path:
    """Return the training curves of all members of a run; the column ``run`` names the member."""
    return run_folder(study, entry) / "curves.parquet"


def plot_path(study: str, entry: str) -> Path:
    """Return the curves for ``dvc plots``: medians over replicas, beside the folder of the run."""
    return DATA / "runs" / study / f"{entry}.json"


def theory_path(study: str, entry: str) -> Path:
    """Return the table of one theory entry."""
    return DATA / "theory" / study / f"{entry}.parquet"


def table_folder(study: str, experiment: str) -> Path:
    """Return the folder of an experiment's tables."""
    return DATA / "tables" / study / experiment


def table_path(study: str, experiment: str, table: str) -> Path:
    """Return one result table of an experiment."""
    return table_folder(study, experiment) / f"{table}.parquet"


def figure_folder(study: str, experiment: str) -> Path:
    """Return the folder of an experiment's figures."""
    return DATA / "figures" / study / experiment


def figure_path(study: str, experiment: str, figure: str, suffix: str) -> Path:
    """Return the specification, the data or the SVG of a figure (`FIGURE_SUFFIXES`)."""
    return figure_folder(study, experiment) / f"{figure}.{suffix}"


def claims_path(study: str, suffix: str) -> Path:
    """Return the claims of a study: ``parquet`` or, for ``dvc metrics``, ``json``."""
    return DATA / "claims" / study / f"claims.{suffix}"
