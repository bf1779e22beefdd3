"""The parameters as one document, resolved at a scale; and the files that are derived from them."""

from __future__ import annotations

import difflib
import io
import json
from pathlib import Path
from typing import Any

from pipeline import params as parameters
from pipeline.engine import stages
from pipeline.errors import SandglassError
from pipeline.params import SECTIONS, SETTINGS, WITH_VARIANTS, Params, schema
from pipeline.params.scales import SCALES, resolve


def document(study: str | None = None, scale: str | None = None, root: Path = Path()) -> str:
    """Return all parameters, or those of one study, resolved at ``scale`` (or their own), as one YAML document.

    Entries with variants are shown as the members that they make, each with all its values.

    Raises SandglassError for a scale or study that there is not.
    """
    if scale is not None and scale not in SCALES:
        raise SandglassError(f"no scale {scale!r}; known: {', '.join(SCALES)}")
    params = parameters.load(root, scale)
    if study is not None and study not in params.studies:
        close = difflib.get_close_matches(study, params.studies, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        known = ", ".join(params.studies)
        raise SandglassError(f"params.yaml: no study {study[:80]!r}{hint}; it names: {known}")
    chosen = [study] if study else list(params.studies)
    main = {"scale": params.scale, "seed": params.seed, "device": params.device}
    return _yaml(main | {"studies": {each: _resolved(each, params) for each in chosen}})


def _resolved(study: str, params: Params) -> dict[str, Any]:
    spec: dict[str, Any] = {"title": params.studies[study].title, "source": params.studies[study].source}
    for section in SECTIONS:
        spec[section] = {}
        for key, entry in params.of_study(section, study).items():
            if section in WITH_VARIANTS and list(entry.members) != [key]:
                spec[section][key] = {"variants": {name: _values(e) for name, e in entry.members.items()}}
            else:
                spec[section][key] = _values(entry.members[key] if section in WITH_VARIANTS else entry)
    raw = {name: params.raw[parameters.study_file(study, name)][name] for name in SETTINGS}
    return spec | {name: resolve(value, params.scale) for name, value in raw.items()}


def _values(entry: Any) -> dict[str, Any]:
    """Return the fields of a typed entry, as its file could say them."""
    return dict(entry.model_dump(exclude={"study"}, exclude_none=True))


def _yaml(tree: dict[str, Any]) -> str:
    from ruamel.yaml import YAML

    # Not the kind that keeps comments: it takes three times as long.
    yaml, text = YAML(typ="safe"), io.StringIO()
    yaml.default_flow_style = None  # short lists on one line
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # declared as None, its default
    yaml.width = 110
    yaml.representer.ignore_aliases = lambda _: True  # each entry is to be read by itself
    yaml.dump(tree, text)
    return text.getvalue()


def write(root: Path = Path()) -> None:
    """Bring what is derived from the parameters below ``root`` up to date, and say of each file whether it was.

    These are what DVC reads, dvc.yaml and ``params/graph.json``, and for editors schemas in ``.sandglass/schema/``.
    """
    loaded = parameters.load(root)
    changed = {str(file): written for file, written in stages.write(loaded, root).items()}
    for study in loaded.studies:
        for file in parameters.study_files(study):
            target = schema.schema_file(file)
            changed[target] = _replace(root / target, schema_text(study, file))
    for name, written in changed.items():
        print(f"{name} is {'written' if written else 'up to date'}")


def schema_text(study: str, file: str) -> str:
    """Return the schema of a study's ``file`` as JSON: a line for each definition, and for what names them."""
    whole = schema.of_file(study, file)
    definitions = _lines(whole.pop("definitions"))
    return f'{_lines(whole)[:-2]},\n"definitions": {definitions}\n}}\n'


def _lines(tree: dict[str, Any]) -> str:
    """Return ``tree`` as JSON with a line for each key."""
    rows = (f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in tree.items())
    return "{\n" + ",\n".join(rows) + "\n}"


def _replace(file: Path, text: str) -> bool:
    """Write ``text`` to ``file`` unless it is there; return whether it was not."""
    if file.is_file() and file.read_text(encoding="utf-8") == text:
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return True
