"""What trained models of this study read and predict, for whoever uses one (`pipeline.load_run`)."""

from __future__ import annotations

from typing import Any, NoReturn

from pipeline.errors import SandglassError


def encode(entry: dict[str, Any], *strings: str) -> NoReturn:
    """Refuse strings, because models of this study read numbers of tokens.

    Questions have the first numbers, then comes the response sign, then answers.

    Raises SandglassError, which says where there are sequences to read.
    """
    raise SandglassError(
        f"models of this study read numbers of tokens, not {' '.join(map(repr, strings)) or 'strings'}; "
        f"sequences of a run's length are in dataset {entry['dataset']}"
    )


def labels(entry: dict[str, Any], outputs: int) -> list[str]:
    """Return what each of the model's ``outputs`` stands for: a token by its number, or a class.

    >>> labels({}, 3)
    ['0', '1', '2']
    """
    return [str(number) for number in range(outputs)]
