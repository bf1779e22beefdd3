"""Exceptions whose messages are meant for the user, and what the system's own say to one."""

from __future__ import annotations

import difflib
import errno
import shutil
from collections.abc import Iterable
from pathlib import Path

# What a user can act on: a disk that is full, or a place that cannot be written.
FULL = (errno.ENOSPC, errno.EDQUOT)
NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)
WRITTEN = (".sandglass", ".work", ".dvc/cache", "data/*", "data/.tmp", "logs")  # in a work tree
FEW, NEAR = 12, 3  # names that a message lists at most: all there are; those that may have been meant


class SandglassError(Exception):
    """Something the user can act on; the command line prints its message as one line, without a traceback."""

    def __str__(self) -> str:
        """Return the message on one line, whatever it quotes: what cannot be printed is escaped."""
        text = super().__str__()
        return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


class UnknownNameError(SandglassError):
    """What a command was asked for does not exist: it could not be carried out, and nothing failed."""


def in_words(error: OSError) -> str:
    """Return in a line what the system said, with the file that it is about.

    A write to a full disk names no file. Then it is the folder with the least room of those that commands write to.
    """
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is not None:
        return f"{error.filename}: {reason}"
    if error.errno not in FULL:
        return reason
    inside = {path.resolve() for pattern in WRITTEN for path in Path().glob(pattern) if path.is_dir()}
    folders = sorted({Path.cwd(), *inside})
    return f"{min(folders, key=lambda folder: shutil.disk_usage(folder).free)}: {reason}"


def meant(name: str, known: Iterable[str], listed: str = "") -> str:
    """Return for the end of a message which of the ``known`` names may have been meant.

    If none is near: all of them, where they are few; else how many there are, and the command that has ``listed`` them.

    >>> meant("dick", ["dyck", "depth"]), meant("x", ["dyck", "depth"])
    ('did you mean dyck?', 'there are: dyck, depth')
    >>> meant("x", map(str, range(700)), "list_runs()")
    'there are 700: list_runs()'
    """
    names = list(known)
    near = difflib.get_close_matches(name[:80], names, n=NEAR, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(near)}?"
    if len(names) <= FEW or not listed:
        return f"there are: {', '.join(names) or 'none'}"
    return f"there are {len(names)}: {listed}"
