"""Results from Python: tables as polars frames, trained models as torch modules.

>>> import pipeline
>>> pipeline.list_tables("dyck")                              # doctest: +SKIP
>>> frame = pipeline.load_table("dyck", "variation")          # doctest: +SKIP
>>> part = pipeline.load_table("dyck", "variation", experiment="dyck-balance")  # doctest: +SKIP
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

import contextlib
import functools
import importlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import polars.selectors as cs

from pipeline import params as parameters
from pipeline.engine import graph
from pipeline.errors import SandglassError, meant
from pipeline.params import Params
from pipeline.references import reading
from pipeline.store import paths, tables
from schemas.claims import Claims
from schemas.curves import Curves
from schemas.theory import Theory

if TYPE_CHECKING:
    from pipeline.access import export as export
    from pipeline.access.replica import Replica
else:

    def __getattr__(name: str) -> object:
        """Return the module ``export``, imported only now: with it comes torch."""
        if name != "export":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return importlib.import_module(f"{__name__}.{name}")


STUDY_FILES = f"{parameters.FOLDER}/*/*.yaml"


def list_tables(study: str, *, root: Path | str | None = None) -> list[str]:
    """Return the names that ``load_table`` knows: datasets, ``claims``, ``theory``, ``curves``, result tables."""
    return list(_parts(study, _load_params(_work_tree(root))))


def list_runs(study: str | None = None, *, root: Path | str | None = None) -> list[str]:
    """Return the ids that ``load_run`` knows, of one study or of all: of a run with variants, each of them."""
    params = _load_params(_work_tree(root))
    if study is not None:
        _known("study", study, params.studies)
    return list(params.members("runs", study))


def load_table(
    study: str,
    name: str,
    *,
    experiment: str | None = None,
    root: Path | str | None = None,
    reference: bool | str = False,
) -> pl.DataFrame:
    """Return a table of ``study``: a result table, ``claims``, or a dataset by its id.

    A result table that several experiments make holds the rows of all of them, or of one ``experiment``. ``theory``
    holds the rows of all theory checks, ``curves`` the training curves of all runs. With ``reference`` the table is
    that of a frozen reference set (``data/reference/<set>/<kind>/``) instead of what was built here: with its name, or
    with True of the one that is named after the study. It has those rows then that are in the set.

    Raises SandglassError if there is no such table (it names the nearest), or if its file is missing, damaged or
    breaks its schema.
    """
    tree = _work_tree(root)
    params = _load_params(tree)
    parts = _parts(study, params)
    kept = study if reference is True else reference
    if kept and name not in parts and (former := _former_tables(kept, name, tree)):
        return pl.concat((reading.read_former(path) for path in former), how="diagonal")
    _known(f"table of {study}", name, parts, f"list_tables({study!r})")
    schema, files = parts[name]
    if experiment is not None:
        files = _of_experiment(study, name, experiment, params)
    if kept:
        return _load_reference(study, kept, files, schema, tree, params)
    for path in files:
        if not (tree / path).is_file():
            raise SandglassError(f"{path} is missing in {tree.resolve()}: {_make(path)}")
    # Curves of runs with other objectives have other columns.
    return pl.concat((tables.read(tree / path, schema) for path in files), how="diagonal")


def _of_experiment(study: str, name: str, experiment: str, params: Params) -> list[Path]:
    """Return the file of a result table that one experiment makes.

    Raises SandglassError if there is no such experiment, or if it makes no such table (it names those that do).
    """
    own = params.of_study("experiments", study)
    _known(f"experiment of {study}", experiment, own)
    if name not in own[experiment].tables:
        makers = ", ".join(key for key, each in own.items() if name in each.tables)
        raise SandglassError(
            f"experiment {experiment} makes no table {name!r}: "
            + (f"{makers} make one" if makers else "it is one of the whole study")
        )
    return [paths.table_path(study, experiment, name)]


def _former_tables(kept: str, name: str, tree: Path) -> list[Path]:
    """Return the files of a reference set that hold a table which the study made once, and makes no more."""
    return sorted((tree / paths.REFERENCE / kept / "tables").rglob(f"{name}.parquet"))


def _load_reference(
    study: str, kept: str, files: list[Path], schema: tables.Schemas, tree: Path, params: Params
) -> pl.DataFrame:
    """Return the rows that the reference set ``kept`` has of what lies in ``files`` of a work tree."""
    folder = paths.REFERENCE / kept
    if of := reading.stranger(tree / folder, study, params.studies):
        raise SandglassError(f"{folder} holds results of {of}, not of {study}")
    table_paths = reading.table_files(kept, files, tree)
    if not table_paths:
        kept_sets = (tree / paths.REFERENCE).glob("*")
        _known("reference set", kept, sorted({path.stem for path in kept_sets if path.suffix in ("", ".dvc")}))
        raise SandglassError(
            f"{files[0]} is missing in {tree.resolve()}: there is no such file in the reference set {kept}"
        )
    return pl.concat((reading.read_table(tree / path, schema) for path in table_paths), how="diagonal")


def to_csv(frame: pl.DataFrame) -> str:
    """Return ``frame`` as CSV; a list becomes its values with spaces between, null an empty field.

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
        with contextlib.suppress(OSError):
            temporary.unlink()


def load_run(run: str, replica: int = 0, *, root: Path | str | None = None, device: str = "cpu") -> Replica:
    """Return replica number ``replica`` (from 0) of ``run``, trained, as a ``torch.nn.Module`` in eval mode.

    ``run`` is an id of a run or of one of its variants (`list_runs`). ``model(model.encode(…))`` gives what the model
    gives for strings or images, logits (B, T, outputs) of a sequence model; ``model.config`` says what was trained; see
    `pipeline.access.replica.Replica` for its inputs, attention patterns and activations.

    Raises SandglassError if there is no such run or replica, if the replica diverged in training, or if the
    checkpoint is missing or damaged.
    """
    from pipeline.access.replica import Replica  # torch takes seconds to import, and tables do without

    tree = _work_tree(root)
    params = _load_params(tree)
    members = params.members("runs")
    if run in params.runs and run not in members:
        raise SandglassError(f"run {run!r} trains several models; load one: {', '.join(params.runs[run].members)}")
    _known("run", run, members, "list_runs()")
    group = params.owner("runs", run)
    path = paths.checkpoint_path(group.study, group.id, run)
    if not (tree / path).is_file():
        raise SandglassError(f"{path} is missing in {tree.resolve()}: {_make(path)}")
    return Replica.load(tree / path, replica).to(device)


def _make(path: Path) -> str:
    fetch = "fetch it with: dvc pull --allow-missing, or " if graph.is_published(path) else ""
    return f"{fetch}make it there with: snakemake {path}"


def _work_tree(root: Path | str | None) -> Path:
    if root is not None:
        return Path(root)
    here = Path.cwd()
    trees = (tree for tree in (here, *here.parents) if _is_work_tree(tree))
    return next(trees, parameters.ROOT)


def _is_work_tree(folder: Path) -> bool:
    return all((folder / name).is_file() for name in (parameters.FILE, "dvc.yaml"))


def _load_params(tree: Path) -> Params:
    if not (tree / parameters.FILE).is_file():
        raise SandglassError(f"{tree.resolve()} holds no {parameters.FILE}: give a work tree of Sandglass as root")
    try:
        texts = tuple((file, file.read_bytes()) for file in (tree / parameters.FILE, *sorted(tree.glob(STUDY_FILES))))
    except OSError:
        return parameters.load(tree)  # which says in a line what cannot be read
    return _loaded(tree, texts)


@functools.lru_cache(maxsize=2)  # who compares two work trees goes to and fro between them
def _loaded(tree: Path, texts: tuple[tuple[Path, bytes], ...]) -> Params:
    """Return the parameters of ``tree``, whose files say ``texts``: as long as they do, they are parsed once.

    That takes a tenth of a second for each study, and was most of the time of whoever loads runs or tables in a loop.
    """
    return parameters.load(tree)


def _parts(study: str, params: Params) -> dict[str, tuple[tables.Schemas, list[Path]]]:
    """Return, by name, the schema of a table and the files that make it up, relative to the work tree."""
    _known("study", study, params.studies)
    dataset = importlib.import_module(f"schemas.{study}.datasets").SCHEMA
    schemas = importlib.import_module(f"schemas.{study}.tables").SCHEMAS
    parts: dict[str, tuple[tables.Schemas, list[Path]]] = {}
    for key, group in params.of_study("datasets", study).items():
        parts |= {member: (dataset, [paths.dataset_path(study, key, member)]) for member in group.members}
    parts["claims"] = Claims, [paths.claims_path(study, "parquet")]
    parts["theory"] = Theory, [paths.theory_path(study, key) for key in params.of_study("theory", study)]
    parts["curves"] = Curves, [paths.curves_path(study, key) for key in params.of_study("runs", study)]
    made: dict[str, list[Path]] = {}
    for key, experiment in params.of_study("experiments", study).items():
        for name in experiment.tables:
            made.setdefault(name, []).append(paths.table_path(study, key, name))
    return parts | {name: (schemas[name], files) for name, files in made.items()}


def _known(kind: str, name: str, known: Iterable[str], listed: str = "") -> None:
    names = list(known)
    if name not in names:
        raise SandglassError(f"no {kind} {str(name)[:80]!r}; {meant(str(name), names, listed)}")
