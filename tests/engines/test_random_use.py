"""Ten short sequences of what people do with both engines; ``make soak`` carries out thousands."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from random_use import RandomUse, References, Tally, lay_out_small, run
from workspace import Workspace


@pytest.fixture(scope="session")
def small(once: Callable[[str, Callable[[Path], Workspace]], Path], fork_server: dict[str, str]) -> Path:
    """The smallest study, built and committed."""

    def build(path: Path) -> Workspace:
        tree = lay_out_small(path / "tree", fork_server)
        tree.engine("snakemake")
        tree.git("add", "-A")
        tree.git("commit", "-qm", "results")
        return tree

    return once("small-template", build) / "tree"


@pytest.mark.slow
# Streams of random numbers: in these two, everything that people do comes at least once.
@pytest.mark.parametrize("number", [147, 284])
def test_sequences(number: int, small: Path, fork_server: dict[str, str], tmp_path: Path) -> None:
    tally = Tally()
    references = References(tmp_path / "references")
    run(partial(RandomUse, small, tmp_path / "work", references, fork_server, tally), number, sequences=5, steps=3)
    print(tally.counts)
    assert tally.counts["sequences"] == 5 and not tally.faults


@pytest.mark.slow
def test_what_must_hold_is_noticed_where_it_does_not(small: Path, fork_server: dict[str, str], tmp_path: Path) -> None:
    references = References(tmp_path / "references")
    machine = RandomUse(small, tmp_path / "work", references, fork_server, Tally())
    (made,) = references.folder.glob("*.json")
    right = made.read_text(encoding="utf-8")
    other = json.loads(right)
    other["theory-toy-identity"]["outputs"] = {"data/theory/toy/toy-identity.parquet": "0" * 32}
    made.write_text(json.dumps(other), encoding="utf-8")
    with pytest.raises(AssertionError, match="calls theory-toy-identity fresh, but"):
        machine.look()
    made.write_text(right, encoding="utf-8")
    (machine.tree.path / "data/theory/toy/toy-identity.parquet").unlink()
    with pytest.raises(AssertionError, match=r"was fresh before, and is not: .*theory-toy-identity"):
        machine.look_after_work()
    with pytest.raises(AssertionError, match="a traceback"):
        machine.do("python", "-c", "1 / 0")
    assert len(machine.tally.faults) == 3 and machine.failed
