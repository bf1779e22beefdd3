"""Results from Python: tables as polars frames, trained models as torch modules.

>>> import pipeline
>>> pipeline.list_tables("dyck")                              # doctest: +SKIP
>>> frame = pipeline.load_table("dyck", "variation")          # doctest: +SKIP
>>> frame.to_pandas(), frame.write_csv("variation.csv")       # doctest: +SKIP
>>> model = pipeline.load_run("dyck-standard", replica=3)     # doctest: +SKIP
>>> logits = model(model.encode("[[]]()"))                    # doctest: +SKIP

Everything is read from a work tree: ``root``, else the one that holds the current directory, else the
repository of this package. What is read has been validated: by its checksum, and tables by their schema.

``.to_pandas()`` needs pandas, which Sandglass itself does not. Datasets hold lists of tokens, which
CSV cannot: ``to_csv`` here, or ``python -m pipeline export dyck dyck-probe16``, writes a list as its
values with spaces between.
"""

from __future__ import annotations

import difflib
import importlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import polars.selectors as cs

from pipeline import params as parameters
from pipeline.engine import graph
from pipeline.errors import SandglassError
from pipeline.params import Params
from pipeline.references.reading import stranger
from pipeline.store import tables
from schemas.claims import Claims
from schemas.curves import Curves
from schemas.theory import Theory

if TYPE_CHECKING:
    from pipeline.access.replica import Replica

SHARED = ("claims", "theory", "curves")  # kept for every study, beside its result tables and datasets


def list_tables(study: str, *, root: Path | str | None = None) -> list[str]:
    """The names that ``load_table`` knows: result tables, ``claims``, ``theory``, ``curves``, datasets."""
    return list(_parts(study, _load_params(_work_tree(root))))


def list_runs(study: str | None = None, *, root: Path | str | None = None) -> list[str]:
    """The ids that ``load_run`` knows, of one study or of all."""
    params = _load_params(_work_tree(root))
    if study is not None:
        _known("study", study, params.studies)
    return [key for key, run in params.runs.items() if study in (None, run.study)]


def load_table(
    study: str, name: str, *, root: Path | str | None = None, reference: bool | str = False
) -> pl.DataFrame:
    """A table of ``study``: a result table, ``claims``, or a dataset by its id.

    ``theory`` holds the rows of all theory checks, ``curves`` the training curves of all runs. With
    ``reference`` the table is that of a frozen reference set (``data/reference/<set>/<kind>/``) instead of
    what was built here: with its name, or with True of the one that is named after the study. Of ``theory`` and
    ``curves`` it has those rows that are in the set.

    Raises SandglassError if there is no such table (it lists those there are), or if its file is
    missing, damaged or breaks its schema.
    """
    tree = _work_tree(root)
    params = _load_params(tree)
    parts = _parts(study, params)
    _known(f"table of {study}", name, parts)
    schema, paths = parts[name]
    if reference:
        kept = study if reference is True else reference
        if of := stranger(tree / graph.REFERENCE / kept, study, params.studies):
            raise SandglassError(f"{graph.REFERENCE / kept} holds results of {of}, not of {study}")
        paths = [_in_reference_set(kept, path) for path in paths]
        paths = [path for path in paths if (tree / path).is_file()] or paths[:1]
    for path in paths:
        if not (tree / path).is_file():
            how = f"there is no such file in the reference set {kept}" if reference else _make(path)
            raise SandglassError(f"{path} is missing in {tree.resolve()}: {how}")
    # Curves of runs with other objectives have other columns.
    return pl.concat((tables.read(tree / path, schema) for path in paths), how="diagonal")


def to_csv(frame: pl.DataFrame) -> str:
    """``frame`` as CSV; a list becomes its values with spaces between, null an empty field.

    >>> to_csv(pl.DataFrame({"seq_id": [0, 1], "tokens": [[1, 2], [3, 4]]}))
    'seq_id,tokens\\n0,1 2\\n1,3 4\\n'
    """
    lists = (cs.list() | cs.array()).cast(pl.List(pl.String)).list.join(" ")
    return frame.with_columns(lists).write_csv()


def write_text(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` by one rename.

    Raises SandglassError if that cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise SandglassError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


def load_run(run: str, replica: int = 0, *, root: Path | str | None = None, device: str = "cpu") -> Replica:
    """Replica number ``replica`` (from 0) of ``run``, trained, as a ``torch.nn.Module`` in eval mode.

    ``model(ids)`` gives logits (B, T, outputs); ``model.config`` says what was trained; see
    `pipeline.access.replica.Replica` for its inputs, attention patterns and activations.

    Raises SandglassError if there is no such run or replica, if the replica diverged in training, or if the
    checkpoint is missing or damaged.
    """
    from pipeline.access.replica import Replica  # torch takes seconds to import, and tables do without

    tree = _work_tree(root)
    params = _load_params(tree)
    _known("run", run, params.runs)
    entry = params.runs[run]
    path = graph.run_folder(entry.study, run) / "model.safetensors"
    if not (tree / path).is_file():
        raise SandglassError(f"{path} is missing in {tree.resolve()}: {_make(path)}")
    return Replica.load(tree / path, replica).to(device)


def _make(path: Path) -> str:
    return f"make it there with: snakemake {path}"


def _work_tree(root: Path | str | None) -> Path:
    if root is not None:
        return Path(root)
    here = Path.cwd()
    found = (tree for tree in (here, *here.parents) if _is_work_tree(tree))
    return next(found, parameters.ROOT)


def _is_work_tree(folder: Path) -> bool:
    return all((folder / name).is_file() for name in (parameters.FILE, "dvc.yaml"))


def _load_params(tree: Path) -> Params:
    if not (tree / parameters.FILE).is_file():
        raise SandglassError(
            f"{tree.resolve()} holds no {parameters.FILE}: give a work tree of Sandglass as root"
        )
    return parameters.load(tree)


def _parts(study: str, params: Params) -> dict[str, tuple[tables.Schemas, list[Path]]]:
    """By name, the schema of a table and the files that make it up, relative to the work tree."""
    _known("study", study, params.studies)
    entry = params.studies[study]
    dataset = importlib.import_module(f"schemas.{study}.datasets").SCHEMA
    results = importlib.import_module(f"schemas.{study}.tables").SCHEMAS
    curves = [graph.run_folder(study, run) / "curves.parquet" for run in entry.runs]
    datasets = {key: (dataset, [graph.dataset_path(study, key)]) for key in entry.datasets}
    shared = {
        "claims": (Claims, [graph.claims_path(study, "parquet")]),
        "theory": (Theory, [graph.theory_path(study, key) for key in entry.theory]),
        "curves": (Curves, curves),
    }
    made = {name: (results[name], [graph.table_path(study, name)]) for name in entry.tables}
    return datasets | shared | made


def _in_reference_set(name: str, path: Path) -> Path:
    """``data/tables/dyck/runs.parquet`` -> ``data/reference/<name>/tables/runs.parquet``."""
    kind, _, *rest = path.relative_to(graph.DATA).parts
    return graph.REFERENCE / name / Path(kind, *rest)


def _known(kind: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name not in names:
        close = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise SandglassError(f"no {kind} {name!r}{hint}; known: {', '.join(names)}")
