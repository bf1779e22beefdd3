"""What `trace` says: parameters as they are written; of a rebuild, where both were made and what that may change."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.audit.compare import DIFFERENT, IDENTICAL, INSIDE, STATES, WITHIN
from pipeline.audit.elsewhere import Yardstick
from pipeline.audit.trace import REBUILT, trace
from pipeline.audit.trace_text import COLOUR, show_rebuilt

ROUNDING = Yardstick(gates=1082, moved=226, largest=1.732, turned=["a", "b"])


@pytest.mark.parametrize(
    ("rebuilt", "last"),
    [
        ({}, "the record was made on Abacus; rebuilt on Quipu"),
        (
            {"state": DIFFERENT},
            "last bits differ between the two, and training lets them grow. Rounding alone moves "
            "226 of the 1082 gates of all claims, by up to 1.7 of a value, and turns 2 verdicts; single "
            "models move as far",
        ),
        ({"state": INSIDE, "made": ["theory-x"]}, "rebuilt on Quipu: last bits differ between the two"),
        ({"state": WITHIN, "rebuilt_on": "Abacus"}, "rebuilt, on Abacus: the same bytes were to be expected"),
        ({"rebuilt_on": "Abacus"}, "the record was made, and this was rebuilt, on Abacus"),
        ({"state": WITHIN, "recorded_on": None}, "on which machine the record was made is not known"),
    ],
)
def test_the_last_line_names_both_machines(
    rebuilt: dict[str, Any], last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {
        "state": IDENTICAL,
        "comparisons": [],
        "made": ["train-x"],
        "kept": [],
        "recorded_on": "Abacus",
        "rebuilt_on": "Quipu",
        "workspace": None,
        "workspace_size": None,
        "temporary": True,
    }
    show_rebuilt({"rebuilt": found | rebuilt}, ROUNDING)
    assert capsys.readouterr().out.rstrip("\n").endswith(last)


@pytest.mark.parametrize(
    ("temporary", "text"),
    [
        (True, "workspace: /tmp/w (18 MB; kept to be looked at, remove it: rm -r /tmp/w)\n"),
        (False, "workspace: /tmp/w (18 MB)\n"),
    ],
)
def test_a_workspace_that_was_chosen_here_is_said_to_be_kept(
    temporary: bool, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {
        "state": DIFFERENT,
        "comparisons": [],
        "made": [],
        "kept": [],
        "recorded_on": None,
        "rebuilt_on": "Quipu",
        "workspace": "/tmp/w",
        "workspace_size": 18_000_000,
        "temporary": temporary,
    }
    show_rebuilt({"rebuilt": found}, None)
    assert text in capsys.readouterr().out


def test_values_by_scale_inside_a_list_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """As ``lengths: [4, {smoke: 8, quick: 64, paper: 64}]`` has them."""
    trace(
        ["flipflop-standins"],
        verified=False,
        rebuilt=False,
        keep_runs=False,
        train=False,
        workspace=None,
        as_json=False,
        code=False,
        full=True,
    )
    assert "lengths [4, 64] of [4, 8|64|64]" in " ".join(capsys.readouterr().out.replace("│", " ").split())


def test_every_state_has_a_status_and_a_colour() -> None:
    assert {*REBUILT} == {*STATES} <= {*COLOUR}
    assert (REBUILT[INSIDE], REBUILT[WITHIN], REBUILT[DIFFERENT]) == (4, 4, 1)
