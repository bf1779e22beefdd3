"""The md5s of dvc.lock, computed without DVC: of files, and of folders as lists of files.

DVC 3 hashes the bytes of a file as they are. A folder it hashes as the JSON list of its files, each
``{"md5": ..., "relpath": ...}``, sorted by path; that list is itself an object in DVC's cache and
remotes, under its own md5 (dvc_data.hashfile.tree.Tree).
"""

from __future__ import annotations

import configparser
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

DVC = Path(".dvc")

Listing = dict[str, str]  # path below the folder -> md5


def md5(path: Path) -> str:
    """Return the md5 of the bytes of the file at ``path``."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def files_in(folder: Path) -> list[Path]:
    """Return the files that DVC counts in ``folder``, sorted; Python's caches are in .dvcignore."""
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(files)


def listing(folder: Path) -> Listing:
    """Return the md5s of the files that lie in ``folder`` now."""
    return {path.relative_to(folder).as_posix(): md5(path) for path in files_in(folder)}


def digest(files: Listing) -> str:
    """Return what dvc.lock says of a folder with these files.

    >>> digest({})
    'd751713988987e9331980363e24189ce.dir'
    """
    return f"{hashlib.md5(listing_text(files).encode()).hexdigest()}.dir"


def listing_text(files: Listing) -> str:
    """Return the list of files as DVC stores it, whose md5 is that of the folder."""
    entries = [{"md5": files[path], "relpath": path} for path in sorted(files)]
    return json.dumps(entries, sort_keys=True)


def stored_listing(folder_md5: str, root: Path = Path()) -> Listing | None:
    """Return the list of files behind the md5 of a folder, where DVC's cache or a remote that is a folder holds it."""
    for content in _stored(folder_md5, root):
        try:
            md5s = {entry["relpath"]: entry["md5"] for entry in json.loads(content)}
        except (ValueError, KeyError, TypeError):
            continue
        if digest(md5s) == folder_md5:  # a damaged object proves nothing
            return md5s
    return None


def stored_file(file_md5: str, root: Path = Path()) -> bytes | None:
    """Return the content of a file, where DVC's cache or a remote that is a folder holds it undamaged."""
    contents = _stored(file_md5, root)
    return next((each for each in contents if hashlib.md5(each).hexdigest() == file_md5), None)


def stored_copies(object_md5: str, root: Path = Path()) -> dict[Path, bool | None]:
    """Return where DVC's cache and remotes that are folders keep a file or a list of files, the cache first, and
    whether what lies there has that md5; None where nothing lies."""
    copies: dict[Path, bool | None] = {}
    for path in _places(object_md5, root):
        copies[path] = md5(path) == object_md5.removesuffix(".dir") if path.is_file() else None
    return copies


def link(path: Path) -> Path | None:
    """Return the link that ``path`` is or, of the folders that hold it, the topmost one that is a link; else None."""
    return next((each for each in (*reversed(path.parents), path) if each.is_symlink()), None)


def _stored(md5: str, root: Path) -> Iterator[bytes]:
    for path in _places(md5, root):
        try:
            yield path.read_bytes()
        except OSError:
            continue


def _places(md5: str, root: Path) -> Iterator[Path]:
    for store in _stores(root):
        yield store / "files" / "md5" / md5[:2] / md5[2:]


def _stores(root: Path) -> Iterator[Path]:
    config = configparser.ConfigParser(interpolation=None, strict=False)
    config.read([root / DVC / "config", root / DVC / "config.local"], encoding="utf-8")
    yield root / DVC / config.get("cache", "dir", fallback="cache")
    for section in config.sections():
        url = config.get(section, "url", fallback="")
        if section.strip("'").startswith("remote ") and url and "://" not in url:
            yield Path(os.path.normpath(root / DVC / url))  # relative to the file that names it
