"""The JSON schemas of a study's parameter files, for completion and checking in editors.

It says what `pipeline.params.load` accepts as far as a schema can: types, bounds, unknown keys. What must fit together,
ids that must exist and numbers that must divide each other, only the loader knows. Nothing reads a schema when results
are built.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter

from pipeline.params import FIXED, LISTS, NAMES, SECTIONS, SETTINGS, WITH_VARIANTS, study_file
from pipeline.params import FOLDER as PARAMS
from pipeline.params.grids import GRID, ID
from pipeline.params.scales import SCALES
from pipeline.params.sharing import LIKE, SHARED

Schema = dict[str, Any]
FOLDER = ".sandglass/schema"  # the first line of each parameter file names it; git does not keep it, nor DVC
REFERENCE = "#/definitions/"
DIALECT = "http://json-schema.org/draft-07/schema#"  # the newest that editors know well
LIKES: Schema = {"$ref": f"{REFERENCE}{LIKE}"}
TAKEN: Schema = {"$ref": f"{REFERENCE}{SHARED}"}
_NAME: Schema = {"type": "string"}
_GRID: Schema = {
    "type": "object",
    "properties": {ID: {"type": "string", "description": "how the id of a member is made, with names in braces"}},
    "required": [ID],
    "minProperties": 2,
    "additionalProperties": {"type": "array", "minItems": 1, "description": "values, or `label: value`, of which one"},
    "description": "all combinations of these choices, each a member",
}
_SHARING: dict[str, Schema] = {  # what every definition may refer to
    LIKE: {
        "anyOf": [_NAME, {"type": "array", "items": _NAME, "minItems": 1}],
        "description": f"takes what these names of `{SHARED}` say; of several the first counts, and what stands beside "
        "it before all",
    },
    SHARED: {"type": "object", "properties": {LIKE: LIKES}, "required": [LIKE]},
}


def schema_file(file: str) -> str:
    """Return the path of the schema of a parameter file, both from the root of the repository.

    >>> schema_file("params/dyck/runs.yaml")
    '.sandglass/schema/dyck/runs.json'
    """
    return f"{FOLDER}/{Path(file).relative_to(PARAMS).with_suffix('.json').as_posix()}"


def of_file(study: str, file: str) -> Schema:
    """Return the JSON schema of one of a study's files, from the types in the study's ``params`` module."""
    types = vars(importlib.import_module(f"pipeline.studies.{study}.params"))
    parts = _Parts()
    section = next((each for each in SECTIONS if study_file(study, each) == file), None)
    schema = _of_settings(types, parts) if section is None else _of_section(study, section, types, parts)
    return {
        "$schema": DIALECT,
        "title": file,
        **schema,
        "definitions": dict(sorted((parts.definitions | _SHARING).items())),
    }


def _of_section(study: str, section: str, types: dict[str, Any], parts: _Parts) -> Schema:
    names = NAMES + (LISTS if section == "experiments" else ())
    shared = {"type": "object", "description": f"what entries have in common: they take it by `{LIKE}`"}
    return {
        "type": "object",
        "minProperties": 1,
        "properties": {SHARED: shared},
        "propertyNames": {"pattern": f"^({SHARED}|{study}-[a-z0-9-]*)$"},
        "additionalProperties": parts.entry(types[SECTIONS[section]], names, section in WITH_VARIANTS),
    }


def _of_settings(types: dict[str, Any], parts: _Parts) -> Schema:
    properties: Schema = {
        "title": {"type": "string", "description": "of the study, as its page shows it"},
        "source": {"type": "string", "description": "the paper or chapter that it rebuilds"},
    }
    properties |= {section: parts.model(types[kind], ()) for section, kind in SETTINGS.items()}
    return _mapping(properties, list(properties))


class _Parts:
    """Schemas of entries; ``definitions`` collects those of the types that their fields name."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}

    def entry(self, kind: Any, names: tuple[str, ...], variants: bool) -> Schema:
        """Return the schema of an entry; with ``variants``, that of one which may be several."""
        members = [self.model(member, names) for member in _members(kind)]
        whole = members[0] if len(members) == 1 else {"anyOf": members}
        if not variants:
            return whole
        fields = _merged([member["properties"] for member in members])
        own = {name: schema for name, schema in fields.items() if name not in FIXED}
        described = "members of this entry, each with what is different in it"
        # In a grid, names in braces may stand for any value.
        free = {name: {"description": schema.get("description", "")} for name, schema in own.items()}
        several = {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {
                "if": {"type": "object", "required": [GRID]},
                "then": _mapping({GRID: _GRID} | free | {LIKE: LIKES}, [GRID]),
                "else": _mapping(own | {LIKE: LIKES}, []),
            },
            "description": described,
        }
        return {
            "if": {"type": "object", "required": ["variants"]},
            "then": _mapping(fields | {"variants": several, LIKE: LIKES}, ["variants"]),
            "else": whole,
        }

    def model(self, kind: type[BaseModel], names: tuple[str, ...]) -> Schema:
        """Return the schema of a type, whose fields other than ``names`` may be given by scale."""
        schema = TypeAdapter(kind).json_schema(ref_template=f"{REFERENCE}{{model}}")
        for name, part in schema.pop("$defs", {}).items():
            self.definitions[name] = _plain(part, ())
        plain_schema = _plain(schema, names)
        fields = {name: self._shared(kind, name, field) for name, field in plain_schema["properties"].items()}
        return plain_schema | {"properties": fields}

    def _shared(self, kind: type[BaseModel], name: str, field: Schema) -> Schema:
        """Return a reference to the definition of a field, which other types and variants have as well."""
        for key in (name, f"{kind.__name__}.{name}"):
            if self.definitions.setdefault(key, field) == field:
                return {"$ref": f"{REFERENCE}{key}"}
        return field


def _members(kind: Any) -> list[type[BaseModel]]:
    """Return the types of a discriminated union, or the one type that ``kind`` is."""
    if isinstance(kind, type):
        return [kind]
    return [member for part in get_args(kind) for member in _members(part)] or []


def _plain(schema: Schema, names: tuple[str, ...]) -> Schema:
    """Return pydantic's schema of a type without its titles and ``study``, and with values by scale."""
    if "properties" not in schema:
        return _untitled(schema)
    fields = {name: _untitled(field) for name, field in schema["properties"].items() if name != "study"}
    fields = {name: field if name in names else _by_scale(field) for name, field in fields.items()}
    described = {"description": schema["description"]} if "description" in schema else {}
    required = [name for name in schema.get("required", []) if name != "study"]
    plain = _mapping(fields | {LIKE: LIKES}, [])
    return described | plain | ({"anyOf": [{"required": [LIKE]}, {"required": required}]} if required else {})


def _untitled(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_untitled(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = ("title", "default", "discriminator")
    plain = {key: _untitled(value) for key, value in schema.items() if key not in left_out}
    if isinstance(plain.get("additionalProperties"), dict):  # a mapping of any names
        plain["properties"] = {LIKE: LIKES}
    return plain


def _by_scale(field: Schema) -> Schema:
    """Return the schema of a field that holds one value, or one for each scale."""
    described = {"description": field["description"]} if "description" in field else {}
    value = {key: part for key, part in field.items() if key != "description"}
    one = {"anyOf": [value, TAKEN]}
    each = _mapping({scale: one for scale in SCALES}, [])  # noqa: C420  # a variant may name some scales alone
    if isinstance(value.get("items"), dict):  # of a list, single places may be given by scale as well
        value = value | {"items": _by_scale(value["items"])}
    return described | {"anyOf": [value, each, TAKEN]}


def _mapping(properties: Schema, required: list[str]) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": required} if required else {})


def _merged(models: list[Schema]) -> Schema:
    """Return the fields of all ``models``; where they differ in one, it may be as in any of them."""
    fields: Schema = {}
    for name in dict.fromkeys(name for model in models for name in model):
        kinds: list[Schema] = []
        for schema in (model[name] for model in models if name in model):
            kinds += [schema] if schema not in kinds else []
        fields[name] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return fields
