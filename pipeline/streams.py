"""Named random streams: all randomness of the project comes from here (DESIGN: determinism).

A stream is addressed by the root seed of params.yaml and a path of names such as
``("dyck", "dyck-standard", "replica", 3, "order", 17)``. Two streams with different names are
independent; asking for a stream twice gives the same numbers, whatever was drawn in between.
"""

from __future__ import annotations

import hashlib

import numpy as np


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """The generator (Philox, counter-based) that belongs to ``names`` under the root ``seed``.

    >>> a, b = stream(1, "dyck", "data"), stream(1, "dyck", "data")
    >>> bool((a.random(3) == b.random(3)).all())
    True
    """
    # Length-prefixed, so that ("a", "bc") and ("ab", "c") are different paths.
    path = "".join(f"{len(str(name))}:{name}" for name in names)
    words = np.frombuffer(hashlib.sha256(path.encode()).digest(), dtype="<u4")
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *words.tolist()])))
