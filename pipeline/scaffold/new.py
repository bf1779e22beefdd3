"""A new study that builds at once: ``python -m pipeline new NAME``.

The files come from ``templates/``: a small language, two small Transformers, a construction, one table, one figure, one
claim and one page. Whoever writes the study replaces them one by one, and has something that runs at every step.
"""

from __future__ import annotations

import importlib
import keyword
import re
from pathlib import Path

import jinja2
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pipeline.errors import SandglassError
from pipeline.params import FILE, FOLDER, ROOT

TEMPLATES = Path(__file__).parent / "templates"
# Where the folders of templates go; NAME in a path is the study's name.
TARGETS = {
    "params": "params/NAME",
    "languages": "pipeline/languages",
    "study": "pipeline/studies/NAME",
    "schemas": "schemas/NAME",
    "tests": "tests/NAME",
}
LONGEST = 30
# How params.yaml may list studies, up to the last of them; and what then follows.
FORMS = (
    (r"^studies: *\[[^\]]*?(?= *\])", ", {}"),
    (r"^studies:[ \t]*(?:#.*)?\n(?:[ \t]*#.*\n)*(?P<indent> *)- .*(?:\n(?P=indent)- .*)*", "\n\\g<indent>- {}"),
)
TAKEN = ("all",)  # names of rules in the Snakefile


def create(name: str, root: Path = ROOT) -> list[Path]:
    """Make the study ``name`` in the repository at ``root``, add it to params.yaml, and return the new files.

    Raises SandglassError for a name that cannot be one, or that is there already; nothing is written then.
    """
    _check_name(name)
    texts = {root / path: text for path, text in files(name).items()}
    folders = [root / folder.replace("NAME", name) for folder in TARGETS.values() if "NAME" in folder]
    for path in (*folders, *texts):
        if path.exists():
            raise SandglassError(f"new: {path.relative_to(root)} is there already")
    header = _with_study(name, root)
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (root / FILE).write_text(header, encoding="utf-8")
    importlib.invalidate_caches()  # packages that were not there when Python looked
    return list(texts)


def files(name: str) -> dict[Path, str]:
    """Return the files of a study by their paths from the root of the repository."""
    environment = jinja2.Environment(
        variable_start_string="@@",
        variable_end_string="@@",
        undefined=jinja2.StrictUndefined,
        block_start_string="@%",
        block_end_string="%@",
        comment_start_string="@#",
        comment_end_string="#@",
        keep_trailing_newline=True,
        autoescape=False,
    )
    texts = {}
    for folder, target in TARGETS.items():
        for template in sorted((TEMPLATES / folder).rglob("*.j2")):
            path = Path(target) / template.relative_to(TEMPLATES / folder).with_suffix("")
            text = environment.from_string(template.read_text(encoding="utf-8"))
            texts[Path(str(path).replace("NAME", name))] = text.render(name=name, title=f"The study {name}")
    return texts


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9]*", name) or len(name) > LONGEST:
        shown = name if len(name) <= LONGEST else f"{name[:LONGEST]}…"
        raise SandglassError(
            f"new: {shown!r} is no name of a study: small letters and digits, a letter first, at most {LONGEST}"
        )
    if keyword.iskeyword(name) or name in TAKEN:
        raise SandglassError(f"new: {name!r} means something else already")


def _with_study(name: str, root: Path) -> str:
    """Return params.yaml with the study at the end of its list, and everything else as it stands."""
    try:
        text = (root / FILE).read_text(encoding="utf-8")
        listed = YAML(typ="safe").load(text)["studies"]
    except (OSError, UnicodeDecodeError, YAMLError, KeyError, TypeError) as error:
        raise SandglassError(f"{FILE}: cannot be read: {' '.join(str(error).split())}") from None
    if name in listed:
        raise SandglassError(f"new: {FILE} lists {name} already, without {FOLDER}/{name}")
    for form, added in FORMS:
        new, count = re.subn(form, rf"\g<0>{added.format(name)}", text, count=1, flags=re.MULTILINE)
        if count:
            return new
    raise SandglassError(f"{FILE}: expected a list `studies:`, to which {name} can be added")
