"""What an audit finds: one thing that does not agree, or was not proved, in the part of the audit that looked at it."""

from __future__ import annotations

from dataclasses import dataclass

COMMIT = "commit"
RECORD = "record"
PUBLISHED = "published"
IDS = "ids"
AGAIN = "made again"
RECOMPUTED = "recomputed"
SETS = "reference sets"
RELEASE = "release"


@dataclass(frozen=True)
class Finding:
    """The part of the audit, what does not agree or was not proved, why, and the command that mends it, if any."""

    part: str
    what: str
    text: str
    mend: str = ""
