"""The files of a study: a folder ``params/<study>/`` with one file for each section, and one for what is left.

DVC reads the whole file of a parameter for each stage that tracks one, so that small files are what makes it fast.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

from pipeline.params import grids
from pipeline.params.checking import File
from pipeline.params.origin import origin
from pipeline.params.reading import read
from pipeline.params.sharing import SHARED, expand

FOLDER = "params"
# Section -> name of the type that validates its entries, in the study's own params module.
SECTIONS = {"datasets": "Dataset", "runs": "Run", "theory": "Theory", "experiments": "Experiment"}
SETTINGS = {"analysis": "Analysis", "claims": "Claims"}
TEXTS = ("title", "source")
WITH_VARIANTS = ("datasets", "runs")
STUDY = "study"  # the file of what is no section of entries: texts and settings


def study_file(study: str, section: str) -> str:
    """Return the path, from the root of the repository, of the file that holds a section of a study's parameters.

    Both engines name it so. A section of entries has a file of its own, in which the entries stand at the top; titles
    and settings are together in one. Raises KeyError for what is no section.

    >>> study_file("dyck", "runs"), study_file("dyck", "analysis")
    ('params/dyck/runs.yaml', 'params/dyck/study.yaml')
    """
    if section not in (*SECTIONS, *SETTINGS, *TEXTS):
        raise KeyError(section)
    return f"{FOLDER}/{study}/{section if section in SECTIONS else STUDY}.yaml"


def study_files(study: str) -> list[str]:
    """Return the paths of all files of a study's parameters."""
    return list(dict.fromkeys(study_file(study, section) for section in (*TEXTS, *SECTIONS, *SETTINGS)))


class SectionFile(File):
    """The file of one section: paths by which its values are refused begin with the section, messages do not."""

    def __init__(self, study: str, section: str) -> None:
        """Take the study and the section."""
        super().__init__(study_file(study, section))
        self._section = section

    def read(self, root: Path) -> dict[str, Any]:
        """Return the entries below the name of the section, and what they have in common below `SHARED`."""
        entries = dict(read(root, self.name))
        shared = {SHARED: entries.pop(SHARED)} if SHARED in entries else {}
        self.values = {self._section: entries} | shared
        return self.values

    def refuse(self, path: str, text: str) -> NoReturn:
        """Raise SandglassError that says what is wrong with the value at ``path``, or with all of the file."""
        section, _, rest = path.partition(".")
        super().refuse(rest if section == self._section else path, text)


class StudyFiles(File):
    """The files of a study as one tree; what is wrong with a value is refused by the file that holds it."""

    def __init__(self, study: str) -> None:
        """Take the study; ``values`` is what the files say, once they were read, without any grid or ``like``."""
        settings = File(study_file(study, next(iter(SETTINGS))))
        super().__init__(settings.name)
        self._sections = {section: SectionFile(study, section) for section in SECTIONS}
        self._settings = settings
        self.written: dict[str, Any] = {}  # what the files say, by section, with every ``like`` as it stands
        self.shared: dict[str, Any] = {}  # what the entries of each section have in common

    def read(self, root: Path) -> dict[str, Any]:
        """Return what the files below ``root`` say, by section and setting, without any grid or ``like``."""
        self._settings.read(root)
        self._settings.known_keys([*TEXTS, *SETTINGS])
        self.values = expand(self._settings, tuple(SECTIONS))
        for section, file in self._sections.items():
            values = file.read(root)
            if section in WITH_VARIANTS:
                entries = values[section].items()
                values[section] = {key: grids.expand(file, f"{section}.{key}", own) for key, own in entries}
            self.written[section], self.shared[section] = values[section], values.get(SHARED, {})
            self.values |= expand(file, (section,))
        return self.values

    def by_file(self) -> dict[str, dict[str, Any]]:
        """Return what each file says, by its path, without any grid or ``like``."""
        settings = {key: value for key, value in self.values.items() if key not in SECTIONS}
        return {self.name: settings} | {file.name: self.values[key] for key, file in self._sections.items()}

    def refuse(self, path: str, text: str) -> NoReturn:
        """Raise SandglassError that says what is wrong with the value at ``path``, in which file that is, and where.

        A value that an entry, or a variant of one, takes from elsewhere is refused there, where it can be mended.
        """
        section, _, rest = path.partition(".")
        file: File = self._sections.get(section, self._settings)
        place = origin(self.written.get(section, {}), self.shared.get(section, {}), rest)
        if place != rest:
            key, *keys = rest.split(".")
            file.refuse(place, f"{text} (taken by {keys[1] if keys[0] == grids.VARIANTS else key})")
        file.refuse(path, text)
