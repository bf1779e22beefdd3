"""Documents and masks against their laws; the closed forms against least squares on the whole population."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy.special import digamma

from pipeline.languages import topic as language
from pipeline.store import tables
from pipeline.studies.topic import datasets
from pipeline.studies.topic.measures import attention, blocks, closed, stages
from schemas.topic import datasets as schema

MASKING = language.Masking(0.15, 0.1, 0.1)


def test_mixtures_have_the_moments_of_their_law() -> None:
    made = language.mixed(np.random.default_rng(0), 20_000, 10, 10, 0.1, 100, 150)
    assert made.lengths.min() == 100 and made.lengths.max() == 150
    owner = np.repeat(np.arange(20_000), made.lengths)
    shares = np.bincount(owner * 10 + (made.tokens - 1) // 10, minlength=200_000).reshape(-1, 10)
    squares = ((shares / made.lengths[:, None]) ** 2).sum(1)
    expected = 0.55 + 0.45 * np.mean(1 / np.arange(100, 151))
    assert abs(squares.mean() - expected) < 4 * squares.std() / np.sqrt(20_000)
    positive = np.where(made.theta > 0, made.theta, 1.0)
    entropy = -(positive * np.log(positive)).sum(1)
    assert abs(entropy.mean() - (digamma(2) - digamma(1.1))) < 4 * entropy.std() / np.sqrt(20_000)
    within = np.bincount((made.tokens - 1) % 10, minlength=10) / len(made.tokens)
    assert np.abs(within - 0.1).max() < 5 * 0.3 / np.sqrt(len(made.tokens))


def test_exact_documents_have_their_topics_in_equal_shares() -> None:
    made = language.exact(np.random.default_rng(0), 300, 5, 3, 2, 200, 210)
    owner = np.repeat(np.arange(300), made.lengths)
    topics = np.bincount(owner * 5 + (made.tokens - 1) // 3, minlength=1500).reshape(-1, 5)
    assert ((topics > 0).sum(1) == 2).all() and ((made.theta == 0.5).sum(1) == 2).all()
    assert ((topics > 0) == (made.theta > 0)).all()
    both = topics.max(1) / made.lengths
    assert abs(both.mean() - 0.5) < 0.04 and len({tuple(row) for row in made.theta}) == 10


@pytest.mark.parametrize("replacements", [np.arange(1, 7), np.arange(10)])
def test_masks_have_the_stated_law(replacements: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    lengths = np.full(4000, 100)
    tokens = np.full(400_000, 2)
    at, shown = language.masked(rng, tokens, lengths, MASKING, replacements)
    assert (shown[~at] == 2).all()
    frequencies = np.bincount(shown[at], minlength=10) / at.sum()
    expected = np.zeros(10)
    expected[replacements] += 0.1 / len(replacements)
    expected[0] += 0.8
    expected[2] += 0.1
    assert np.abs(frequencies - expected).max() < 5 * 0.5 / np.sqrt(at.sum())
    assert abs(at.mean() - 0.15) < 5 * 0.36 / np.sqrt(400_000)


def test_every_document_has_a_mask() -> None:
    rng = np.random.default_rng(0)
    lengths = np.full(2000, 3)
    at, _ = language.masked(rng, np.ones(6000, np.int64), lengths, MASKING, np.arange(1, 5))
    many = at.reshape(-1, 3).sum(1)
    assert many.min() == 1
    p = 3 * 0.15 * 0.85**2 / (1 - 0.85**3)
    assert abs((many == 1).mean() - p) < 4 * np.sqrt(p * (1 - p) / 2000)


def test_the_masked_law_is_that_of_a_long_document() -> None:
    law = language.population(4, 3, 2)
    shown = language.masked_law(law, MASKING)
    assert np.abs(shown.sum(1) - 1).max() < 1e-12 and len(law) == 6
    rng = np.random.default_rng(0)
    tokens = rng.choice(13, p=law[3], size=200_000)
    _, what = language.masked(rng, tokens, np.array([200_000]), MASKING, np.arange(1, 13))
    share = np.bincount(what, minlength=13) / 200_000
    assert (np.abs(share - shown[3]) < 4 * np.sqrt(shown[3] / 200_000)).all()


@pytest.mark.parametrize(("topics", "words", "chosen"), [(10, 10, 2), (4, 5, 1), (6, 3, 3)])
def test_the_value_matrix_of_the_theorem_is_the_shortest_solution(topics: int, words: int, chosen: int) -> None:
    law = language.population(topics, words, chosen)
    x = language.masked_law(law, MASKING)
    shortest = law.T @ x @ np.linalg.pinv(x.T @ x, rcond=1e-10, hermitian=True)
    assert np.abs(shortest - language.block_values(topics, words, MASKING)).max() < 1e-10
    other = language.diagonal_values(topics, words, MASKING)
    assert np.abs(other @ x.T - law.T)[1:].max() < 1e-12  # it solves the same equations


def test_questions_by_hand() -> None:
    made = language.Documents(np.array([1, 2, 2, 4, 3]), np.array([3, 2]), np.ones((2, 2)) / 2)
    at = np.array([True, False, True, False, True])
    shown = np.array([0, 2, 0, 4, 1])
    questions = language.questions(made, at, shown, 2, 2, released=False)
    assert questions.document.tolist() == [0, 1] and questions.shown.tolist() == [0, 1]
    assert questions.labels.tolist() == [[0, 1, 1, 0, 0], [0, 0, 0, 1, 0]]
    assert questions.counts.tolist() == [[2, 0, 1, 0, 0], [0, 1, 0, 0, 1]]
    hidden = language.questions(made, at, shown, 2, 2, released=True)
    assert hidden.counts.tolist() == [[0, 0, 1, 0, 0, 1, 1, 0], [0, 0, 0, 0, 1, 1, 1, 0]]
    both = language.questions(made, np.array([True] * 3 + [False, True]), np.array([0, 2, 0, 4, 1]), 2, 2, False)
    assert language.by_document(both).labels.tolist() == [[0, 1, 2, 0, 0], [0, 0, 0, 1, 0]]


def made(**changes: object) -> pl.DataFrame:
    settings = {
        "kind": "disjoint",
        "language": "topic",
        "study": "topic",
        "topics": 3,
        "words": 2,
        "alpha": 0.3,
        "chosen": None,
        "shortest": 9,
        "longest": 20,
        "train": 40,
        "dev": 20,
        "p_mask": 0.15,
        "p_keep": 0.1,
        "p_random": 0.1,
    }
    entry = SimpleNamespace(**(settings | changes))
    return datasets.generate(entry, "d", 1)[0]  # type: ignore[arg-type]


def test_a_dataset_reads_back_as_it_was_drawn() -> None:
    frame = made()
    tables.validate(frame, schema.Documents, "d")
    read = schema.documents(frame)
    assert read.theta.shape == (60, 3) and read.lengths.sum() == len(read.tokens)
    for scheme in schema.SCHEMES:
        at, shown = schema.masks(frame, scheme)
        assert (shown[~at] == read.tokens[~at]).all() and at.sum() == frame[f"{scheme}_at"].list.len().sum()
    assert schema.masking(frame) == MASKING
    # The documents do not depend on how they are masked.
    assert made(p_mask=0.3)["tokens"].to_list() == frame["tokens"].to_list()


@pytest.mark.parametrize(("column", "value"), [("thesis_at", 99), ("thesis_shown", 7), ("tokens", 7)])
def test_a_wrong_document_is_refused(column: str, value: int) -> None:
    wrong = made().with_columns(pl.col(column).list.eval(pl.element() * 0 + value).cast(pl.List(pl.Int16)))
    with pytest.raises(Exception, match=r"words of the corpus|at least one position"):
        tables.validate(wrong, schema.Documents, "d")


def test_least_squares_is_the_minimum() -> None:
    questions = schema.questions(made(train=400), "thesis")
    problem = closed.problem(questions, intercept=True)
    rng = np.random.default_rng(0)
    for l2 in (0.0, 0.01):
        best = closed.optimum(problem, l2)
        for _ in range(5):
            other = best + 0.1 * rng.normal(size=best.shape)
            neighbour, here = (problem.loss(w) + l2 * (w**2).sum() for w in (other, best))
            assert neighbour > here
        assert np.abs(closed.descended(problem, l2, 500) - best).max() < 1e-6
    # The loss is that over positions.
    by_document = language.by_document(questions)
    x = by_document.counts / by_document.counts.sum(1, keepdims=True)
    answers = np.c_[x, np.ones(len(x))] @ best.T
    total = sum(
        by_document.labels[d, w] * ((answers[d] - np.eye(7)[w]) ** 2).sum() for d in range(len(x)) for w in range(7)
    )
    assert problem.loss(best) == pytest.approx(total / by_document.labels.sum())


def test_block_statistics_by_hand() -> None:
    matrix = np.array([[5.0, 2, 0, 1], [2, 5, 1, 0], [0, 1, 5, 2], [1, 0, -2, 5]])
    stats = blocks.block_stats(matrix, 2, 2)
    assert stats["diag_mean"] == 5 and stats["same_offdiag_mean"] == 1 and stats["block_mean"] == 3
    assert stats["diff_mean"] == 0.5 and stats["diff_std"] == 0.5
    assert stats["block_sum_same"] == 6 and stats["block_sum_diff"] == 1
    assert stats["top_share"] == pytest.approx(5 / 7) and stats["top_is_self"] == stats["top_distinct"] == 1
    swapped = blocks.block_stats(matrix[[1, 0, 2, 3]], 2, 2)
    assert swapped["top_is_self"] == 0.5 and swapped["top_distinct"] == 1
    assert stats["auc"] == 0.75 and np.isnan(stats["nonblock_sub_std"])
    assert np.isnan(blocks.block_stats(matrix * np.nan, 2, 2)["auc"])


def test_the_spread_of_subsets_is_exact() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.normal(0, 0.02, (100, 100))
    outside = matrix[~blocks.same_topic(10, 10)]
    drawn = [rng.choice(outside, 1000, replace=False).mean() for _ in range(2000)]
    assert blocks.block_stats(matrix, 10, 10)["nonblock_sub_std"] == pytest.approx(np.std(drawn), rel=0.06)


def test_labels_shift_and_special_ids_have_none() -> None:
    right = attention.labels(104, 10, 10, 0)
    assert right[0] == right[101] == -1 and right[1] == 0 and right[100] == 9
    shifted = attention.labels(104, 10, 10, 4)
    assert shifted[6] == 0 and shifted[7] == 1 and shifted[96] == 9 and (shifted[97:101] == -1).all()
    assert shifted[101] == shifted[102] == 0 and shifted[103] == shifted[0] == -1
    for offset in attention.OFFSETS:  # a token is the same word as itself, whatever label it has
        kind = attention.categories(attention.labels(104, 10, 10, offset))
        assert (np.diag(kind) == 0).all() and (kind == 0).sum() == 104 and (kind == kind.T).all()


def test_growth_and_onset() -> None:
    grown = stages.growth(np.array([1.0, 1.0, 2.0, 5.0]), 1.0)
    assert grown.tolist() == [0, 0, 0.25, 1]
    assert stages.onset(grown, 0.1) == 3 and stages.onset(np.zeros(3), 0.1) is None
    assert np.isnan(stages.growth(np.ones(3), 1.0)).all()
