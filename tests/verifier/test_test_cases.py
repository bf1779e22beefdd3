"""Documents of test cases: their law, the process verifier, metrics, and samples for verifiers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.languages import test_cases as language
from pipeline.models.llama import decoder
from pipeline.models.llama.decoding import Plan
from pipeline.params import load
from pipeline.studies.verifier import datasets
from pipeline.studies.verifier.measures import cases
from pipeline.studies.verifier.names import CASE_MODELS, CASES

# Setting 3 of the chapter, section 3.7.
FROZEN = language.Corpus(4, 2, 1.5, (0.05, 0.15, 0.30, 0.45), 0.7, 0.5, 0.9, 0.4, 0.5)


def lines_of(row: np.ndarray, start: int) -> list[list[int]]:
    written = [int(token) for token in row[start:] if token != language.PAD]
    found: list[list[int]] = [[]]
    for token in written:
        found[-1].append(token)
        if token == language.NEWLINE:
            found.append([])
    return [line for line in found if line and line[0] == language.ASSERT]


def test_the_parameters_have_the_frozen_setting() -> None:
    params = load(scale="quick")
    of_data = datasets.corpus(params.members("datasets", "verifier")[CASES].corpus)
    of_models = datasets.corpus(params.members("runs", "verifier")[CASE_MODELS].corpus)
    assert of_data == of_models == FROZEN
    for name, corpus in (("1", (0.1,) * 4), ("2", (0.25,) * 4)):
        entries = params.members("datasets", "verifier")[f"verifier-cases-{name}"].corpus
        assert tuple(entries.corruption) == corpus and entries.zipf == 1.0


def test_documents_follow_their_law() -> None:
    n = 3000
    tokens, starts = language.sample(np.random.default_rng(0), n, FROZEN)
    assert len(language.SIGNS) == 54 and int((tokens != 0).sum(1).max()) <= FROZEN.longest
    names = [cases.name_of(row[:start].tolist()) for row, start in zip(tokens, starts, strict=True)]
    bodies = [language.SIGNS[row[start - 7]] for row, start in zip(tokens, starts, strict=True)]
    reserved = np.array([name in language.RESERVED for name in names])
    appended = np.array([body == language.APPEND for body in bodies])
    assert abs(reserved.mean() - 0.5) < 0.04 and not appended[reserved].any()
    assert abs(appended[~reserved].mean() - 0.9) < 0.03
    wrong: dict[int, list[bool]] = {0: [], 1: [], 2: [], 3: []}
    for row, start, name, body in zip(tokens, starts, names, bodies, strict=True):
        if body != language.APPEND:
            continue
        for line in lines_of(row, start):
            digits = line.index(language.CLOSE) - line.index(language.OPEN)
            size = (digits) // 2
            wrong[min(size, 3)].append(language.first_error(name, 1, line) >= 0)
    rates = {size: np.mean(found) for size, found in wrong.items()}
    # "v first" is no mistake with an empty list, or where the digits are alike; another digit may be the same.
    assert rates[0] < 0.05 and rates[0] < rates[1] < rates[2] < rates[3] < 0.45
    assert rates[1] > 0.06 and rates[3] > 0.25
    rambling = np.array([language.DEF in row[start:] for row, start in zip(tokens, starts, strict=True)])
    assert abs(rambling.mean() - 0.5) < 0.04
    assert [language.text(row.tolist()) for row in language.sample(np.random.default_rng(0), 2, FROZEN)[0]] == [
        language.text(row.tolist()) for row in tokens[:2]
    ]


def test_without_corruption_every_document_of_append_is_right() -> None:
    pure = dataclasses.replace(FROZEN, corruption=(0.0, 0.0, 0.0, 0.0), reserved=0.0, append=1.0)
    tokens, starts = language.sample(np.random.default_rng(1), 200, pure)
    for row, start in zip(tokens, starts, strict=True):
        name, written = cases.name_of(row[:start].tolist()), row[start:].tolist()
        assert language.first_error(name, pure.cases, written) == -1
        found = language.cases_of(name, pure.cases, written)
        assert len(found) == pure.cases and all(right for _, _, right in found)


@pytest.mark.parametrize(
    ("written", "at"),
    [
        ("assert a b c ( [ 1 ] , 2 ) == [ 1 , 2 ] NL", -1),
        ("assert a b c ( [ 1 ] , 2 ) == [ 2 , 1 ] NL", 13),
        ("assert a b c ( [ 1 ] , 2 ) == [ 1 ] NL", 14),
        ("assert f ( [ 1 ] , 2 ) == [ 1 , 2 ] NL", 1),
        ("assert a b c ( [ ] , 2 ) == [ 2 ] NL E", 15),
        ("assert a b c ( [ 1 , ] , 2 )", 8),
        ("E", 0),
    ],
)
def test_the_first_error_is_where_the_first_wrong_token_stands(written: str, at: int) -> None:
    assert language.first_error("abc", 2, language.encode(written)) == at


@given(st.lists(st.integers(0, 9), max_size=8), st.integers(0, 9), st.data())
@settings(max_examples=60, deadline=None)
def test_a_right_line_is_accepted_and_no_changed_one(digits: list[int], value: int, data: st.DataObject) -> None:
    name = [language.ID[letter] for letter in "qxt"]
    line = language.line(name, digits, value, [*digits, value])
    assert language.first_error("qxt", 1, line) == -1
    assert language.cases_of("qxt", 1, line) == [(tuple(digits), value, True)]
    where, other = data.draw(st.integers(0, len(line) - 1)), data.draw(st.integers(1, 53))
    changed = [*line[:where], other, *line[where + 1 :]]
    right = [right for _, _, right in language.cases_of("qxt", 1, changed)]
    assert changed == line or right != [True] or language.first_error("qxt", 1, changed) == -1


def test_distinct_cases_are_pooled_over_the_repetitions_of_a_prompt() -> None:
    spec = decoder.Spec(1, 1, 4, 4, 54)
    params = {n: torch.from_numpy(v[None]) for n, v in decoder.initial(spec, np.random.default_rng(0)).items()}
    models = cases.CaseModels(spec, params, cases=2)
    prompt = language.prompt("abc", "APPEND", [])
    right = "assert a b c ( [ ] , 1 ) == [ 1 ] NL"
    other = "assert a b c ( [ ] , 2 ) == [ 2 ] NL"
    wrong = "assert a b c ( [ 3 ] , 2 ) == [ 2 ] NL"
    rows = [f"{right} {right} {other}", f"{right} {wrong}", f"{other} {right}", "E"]
    written = [prompt + language.encode(row) for row in rows]
    width = max(map(len, written))
    tokens = np.array([[row + [0] * (width - len(row)) for row in written]])
    lengths, full = np.array([[len(row) for row in written]]), np.full((1, 4), len(prompt))
    ones = np.ones((1, 4), np.int64)
    done = cases.Completed(tokens, lengths, full, lengths - full, 0 * ones, 0 * ones, repetitions=4)
    whole = cases.score(models, done, 0)
    assert (whole.requested, whole.distinct, whole.generated, whole.right) == (8, 2, 6, 5)
    assert [distinct for _, distinct in whole.cumulative] == [1, 1, 2, 2]
    assert whole.calls == int((lengths - full).sum()) == whole.cumulative[-1][0]


def test_the_ground_truth_answers_as_the_reader_does() -> None:
    known, rng = cases.ground_truth(3), np.random.default_rng(2)
    tokens, starts = language.sample(rng, 40, dataclasses.replace(FROZEN, cases=3))
    lengths = rng.integers(starts + 1, (tokens != 0).sum(1) + 1)
    wanted = [
        language.first_error(cases.name_of(row[:start].tolist()), 3, row[start:length].tolist()) < 0
        for row, start, length in zip(tokens, starts, lengths, strict=True)
    ]
    for _ in range(2):  # the second time from what it remembers
        answer = known.right(tokens.astype(np.int64), lengths.astype(np.int64))
        assert answer.tolist() == wanted and 0 < sum(wanted) < 40


def test_samples_for_verifiers_end_with_the_first_error_or_before_it() -> None:
    spec = decoder.Spec(1, 1, 4, 4, 54)
    params = {n: torch.from_numpy(v[None]) for n, v in decoder.initial(spec, np.random.default_rng(0)).items()}
    models = cases.CaseModels(spec, params, cases=4)
    tokens, starts = language.sample(np.random.default_rng(3), 60, FROZEN)
    lengths = (tokens != 0).sum(1)
    zero = np.zeros((1, 60), np.int64)
    done = cases.Completed(
        tokens[None].astype(np.int64), lengths[None], starts[None].astype(np.int64), zero, zero, zero, 1
    )
    for blocks in (False, True):
        rows, ends, right = cases.samples(models, done, 0, np.random.default_rng(0), blocks)
        assert 0 < right.mean() < 1
        for row, end, ok in zip(rows, ends, right, strict=True):
            start = row.tolist().index(language.TEST) + 5
            at = language.first_error(cases.name_of(row[:start]), 4, row[start:end].tolist())
            assert (at < 0) == ok and (blocks or ok or start + at == end - 1)
            assert not blocks or row[end - 1] == language.NEWLINE
    plan = Plan(language.END)
    drawn = cases.complete(models, plan, [language.prompt("abc", "APPEND", [])] * 2, 9, 3, np.random.default_rng(0), 9)
    assert drawn.lengths.shape == (1, 6) and (drawn.calls == drawn.lengths - drawn.prompts).all()
