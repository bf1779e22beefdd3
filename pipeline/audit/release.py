"""Releases: signed tags of the commit that is checked out. Such a signature covers dvc.lock, and so every md5 in it.

Whose keys are trusted, git knows: the keyring of GnuPG, or ``gpg.ssh.allowedSignersFile`` for keys of SSH.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

from pipeline.audit import git

GOOD, BAD, UNCHECKED = "good", "bad", "not checked"
_SIGNATURE = re.compile(r"^-----BEGIN (?:PGP|SSH) SIGNATURE-----$", re.MULTILINE)
_WRONG = re.compile(
    r"BADSIG|BAD signature|incorrect signature|Signature verification failed|Could not verify signature"
)
_SIGNER = re.compile(r'Good (?:"git" )?signature (?:for|from) (?:"([^"]+)"|(\S+))')


@dataclass(frozen=True)
class Release:
    """A signed tag: its name, whether the signature is good, and what git says of it."""

    tag: str
    state: str
    text: str


def releases() -> list[Release]:
    """Return the signed tags of the commit that is checked out, each with its signature checked by ``git verify-tag``.

    A signature by a key that git does not know here is not checked: it is neither good nor bad.
    """
    return [_checked(tag) for tag in git.tags() if _SIGNATURE.search(git.content(tag) or "")]


def _checked(tag: str) -> Release:
    done = subprocess.run(["git", "verify-tag", tag], capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    if done.returncode == 0:
        signer = _SIGNER.search(output)
        return Release(tag, GOOD, f"signed by {next(filter(None, signer.groups()))}" if signer else "signed")
    reason = " ".join(output.split()) or "git says nothing of it"
    return Release(tag, BAD if _WRONG.search(output) else UNCHECKED, reason)
