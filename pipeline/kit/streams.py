"""What makes results repeat bit for bit: named random streams, and sums on one thread (DESIGN: determinism).

All randomness of the project comes from here.

A stream is addressed by the root seed of params.yaml and a path of names such as
``("dyck", "dyck-standard", "replica", 3, "order", 17)``. Two streams with different names are
independent; asking for a stream twice gives the same numbers, whatever was drawn in between.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """Return the generator (Philox, counter-based) that belongs to ``names`` under the root ``seed``.

    >>> a, b = stream(1, "dyck", "data"), stream(1, "dyck", "data")
    >>> bool((a.random(3) == b.random(3)).all())
    True
    """
    # Length-prefixed, so that ("a", "bc") and ("ab", "c") are different paths.
    path = "".join([f"{len(name)}:{name}" for name in map(str, names)])
    # The words that numpy makes of [seed, *words of the digest] (`np.random.SeedSequence`); it takes twice as long.
    root = int(seed).to_bytes(4 * max(1, -(-int(seed).bit_length() // 32)), "little")
    words = np.frombuffer(root + hashlib.sha256(path.encode()).digest(), dtype="<u4")
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(words)))


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: its sums then do not depend on the number of cores.

    Engines run other jobs on the other cores.
    """
    import torch  # here, because most steps that draw numbers do without it, and it takes seconds

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
