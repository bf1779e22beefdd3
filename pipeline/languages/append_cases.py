"""Prompts that ask a model of code for test cases of a function that appends to a list (Li 2025, section 3.2.2.1).

The stand-in of `pipeline.languages.test_cases` has signs of its own; here all is text, for models that were trained on
code. A prompt is laid out as in Table 3.7. A completion is read line by line: a case is ``assert name(list, item) ==
list`` with literals; lines that do not begin with ``assert`` are no cases, and what follows the last case that was
asked for is no error.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

HEAD, EQUALS = "assert ", ") == "


def prompt(name: str, cases: int, sums: Sequence[tuple[int, int]]) -> str:
    """Return the prompt that asks for ``cases`` test cases, behind demonstrations of addition.

    >>> print(prompt("ovs", 8, [(3, 9)]))
    def f(a, b):
        return a + b
    <BLANKLINE>
    List 8 test cases of the above function f, one in each line:
    assert f(3, 9) == 12
    <BLANKLINE>
    def ovs(l, item):
        assert type(l) is list
        l.append(item)
        return l
    <BLANKLINE>
    List 8 test cases of the above function ovs, one in each line:
    <BLANKLINE>
    """
    asked = f"List {cases} test cases of the above function {{}}, one in each line:\n"
    shown = "".join(f"assert f({i}, {j}) == {i + j}\n" for i, j in sums)
    body = "    assert type(l) is list\n    l.append(item)\n    return l\n"
    return (
        f"def f(a, b):\n    return a + b\n\n{asked.format('f')}{shown}\n"
        f"def {name}(l, item):\n{body}\n{asked.format(name)}"
    )


def cases_of(name: str, cases: int, text: str) -> list[tuple[str, str, bool]]:
    """Return list, item and whether the result is right, of the first ``cases`` lines that begin with assert.

    >>> cases_of("f", 2, "assert f([1], 2) == [1, 2]\\nassert f([], 'a') == []\\nassert f([], 1) == [1]\\n")
    [('[1]', '2', True), ('[]', "'a'", False)]
    """
    found: list[tuple[str, str, bool]] = []
    for line in text.split("\n"):
        if line.startswith(HEAD) and len(found) < cases:
            known = _read(name, line)
            found.append(("", "", False) if known is None else (repr(known[0]), repr(known[1]), known[2]))
    return found


def first_error(name: str, cases: int, text: str) -> int:
    """Return the place of the first letter with which a completion goes wrong; -1 for none.

    A line that is not finished is wrong only where it already differs from all right ones.

    >>> first_error("f", 2, "assert f([1], 2) == [2, 1]\\n")
    21
    >>> first_error("f", 2, "assert f([1], 2) == [1, 2]\\nassert f([")
    -1
    >>> first_error("f", 1, "assert g([1], 2)")
    7
    """
    start, done = 0, 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if done == cases:
            break
        whole = number < len(lines) - 1
        at = _wrong(name, line, whole)
        if at >= 0:
            return start + at
        done += whole and line.startswith(HEAD)
        start += len(line) + 1
    return -1


def _wrong(name: str, line: str, whole: bool) -> int:
    """Return where a line goes wrong; -1 if it does not, or is no case."""
    if not (line.startswith(HEAD) or (not whole and HEAD.startswith(line))):
        return -1
    head = f"{HEAD}{name}("
    if (differs := _differs(line[: len(head)], head)) >= 0:
        return differs
    known = _read(name, line)
    return -1 if known is not None and known[2] else _behind(name, line, whole)


def _behind(name: str, line: str, whole: bool) -> int:
    """Return where a line with the right head and no right result goes wrong: in its result, or where it ends."""
    place = line.find(EQUALS)
    while place >= 0:
        start = place + len(EQUALS)
        known = _read(name, f"{line[:start]}[]")
        if known is not None:
            differs = _differs(line[start:], repr([*known[0], known[1]]))
            return start + differs if differs >= 0 else len(line) if whole else -1
        place = line.find(EQUALS, start)
    return len(line) if whole else -1


def _differs(found: str, wanted: str) -> int:
    """Return the first place where ``found`` is not what ``wanted`` begins with; -1 for none."""
    return next((n for n, letter in enumerate(found) if n >= len(wanted) or letter != wanted[n]), -1)


def _read(name: str, line: str) -> tuple[list[object], object, bool] | None:
    """Return list, item and whether the result is right, of a line that is a case; None for any other."""
    try:
        test = ast.parse(line, mode="exec").body[0]
    except (SyntaxError, ValueError, MemoryError, RecursionError, IndexError):
        return None
    compared = test.test if isinstance(test, ast.Assert) else None
    if not isinstance(compared, ast.Compare) or not isinstance(compared.ops[0], ast.Eq) or len(compared.ops) > 1:
        return None
    call = compared.left
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != name:
        return None
    if call.keywords or len(call.args) != 2:
        return None
    try:
        items, item, result = (ast.literal_eval(part) for part in (*call.args, compared.comparators[0]))
    except (ValueError, TypeError, MemoryError, RecursionError):  # what is no literal
        return None
    return (items, item, result == [*items, item]) if isinstance(items, list) else None
