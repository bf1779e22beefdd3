"""What a reference set says of itself in ``record.json``: its name, and of every job behind it what dvc.lock said."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pipeline.engine import graph
from pipeline.errors import SandglassError
from pipeline.params import FILE, grids
from pipeline.params.sharing import SHARED, recorded
from pipeline.store.paths import DATA, REFERENCE

RECORD = "record.json"
NAMES = REFERENCE / "names.json"  # which set has which name, by md5: sets from before records held it do not say it
PARTS = ("params", "device", "code", "outputs")  # what a record says of each job, at least


def kept_path(name: str, path: Path) -> Path:
    """Return where the set ``name`` keeps the result ``path``: the same without the study.

    >>> kept_path("dyck-wide", Path("data/tables/dyck/dyck-balance/fig3.parquet")).as_posix()
    'data/reference/dyck-wide/tables/dyck-balance/fig3.parquet'
    """
    kind, _, *rest = path.relative_to(DATA).parts
    return REFERENCE.joinpath(name, kind, *rest)


def read_record(folder: Path) -> dict[str, Any]:
    """Return the record of the set in ``folder``; an empty one where none came with it.

    Raises SandglassError if it is damaged.
    """
    path = folder / RECORD
    if not path.is_file():
        return {}
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for job in record["jobs"].values():
            for part in PARTS:
                job[part]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SandglassError(f"{path} is no record of a reference set ({type(error).__name__}: {error})") from None
    return record


def read_names() -> dict[str, str]:
    """Return the md5 of each reference set by its name, as `NAMES` lists them; none without such a file.

    Raises SandglassError if it is damaged.
    """
    try:
        names: dict[str, str] = dict(json.loads(NAMES.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError) as error:
        raise SandglassError(f"{NAMES} is no list of reference sets ({error}); git checkout {NAMES}") from None
    return names


def write_name(name: str, md5: str) -> None:
    """List the set ``name`` with its md5 in `NAMES`."""
    names = read_names() | {name: md5}
    temporary = NAMES.with_name(f".{NAMES.name}.tmp")
    temporary.write_text(json.dumps(names, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    temporary.replace(NAMES)


def lock_parameters(stage: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a stage of dvc.lock by path, as `Params.value` takes and returns them.

    What the stage's entry is like is recorded beside it.

    >>> toy = {"toy-a": {"like": "base", "lr": 2}, "shared.base": {"lr": 1, "width": 8}}
    >>> lock_parameters({"params": {"params.yaml": {"scale": "smoke"}, "params/toy/runs.yaml": toy}})
    {'scale': 'smoke', 'params/toy/runs.yaml:toy-a': {'lr': 2, 'width': 8}}
    """
    parameters = {}
    prefix = f"{SHARED}."
    for file, values in stage.get("params", {}).items():
        shared = {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}
        for key, value in values.items():
            if not key.startswith(prefix):
                parameters[key if file == FILE else f"{file}:{key}"] = recorded(grids.recorded(value), shared)
    return parameters


def step_log(job: graph.Job, params: dict[str, Any], root: Path = Path()) -> dict[str, Any]:
    """Return what the step noted of its device and software, if it ran in ``root`` with the recorded ``params``."""
    try:
        noted = json.loads((root / graph.LOGS / "steps" / f"{job.name}.json").read_text(encoding="utf-8"))
        tracked = job.text_of({path: params.get(path) for path in job.tracked})
        current = noted["params_hash"] == hashlib.md5(tracked.encode()).hexdigest()
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return noted if current and noted.get("status") == "done" else {}
