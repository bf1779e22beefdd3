"""Best predictors against enumeration, attention with weights written down, and the experiment on grammars."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from pipeline.errors import SandglassError
from pipeline.kit import charts
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages import pcfg
from pipeline.steps.analyse import finished
from pipeline.studies.distillation.analysis import grammars
from pipeline.studies.distillation.claims import grammars as claims
from pipeline.studies.distillation.exact import attention, inside
from pipeline.studies.distillation.figures import grammars as drawings
from pipeline.studies.distillation.theory import attention as selection
from pipeline.studies.distillation.theory import lengths, oracle
from schemas.distillation.tables import SCHEMAS


def masked(name: str, root: int, n: int, rate: float) -> tuple[NDArray[Any], ...]:
    """Return tokens, what is shown, what became of each (N, T), and lengths."""
    rng = stream(3, "test", "masked", name, root)
    tokens, lengths = pcfg.strings(rng, name, n, root)
    shown, kind = pcfg.mask(rng, tokens, rate)
    words, seen = (pcfg.padded(part, lengths)[:, 1:] for part in (tokens, shown))
    return words, seen, pcfg.padded(kind, lengths, 0, 0)[:, 1:], lengths


@pytest.mark.parametrize(("name", "root"), [("cfg3b", 13), ("cfg3b", 14), ("cfg3f", 12), ("cfg3i", 10), ("cfg3h", 7)])
@pytest.mark.parametrize("hide", [False, True])
def test_posteriors_are_those_of_all_derivations(name: str, root: int, hide: bool) -> None:
    _, seen, kind, lengths = masked(name, root, 6, 0.4)
    evidence, own = inside.evidence(seen, 0.4, kind, hide), inside.selected_evidence(seen)
    slopes, totals = inside.enumerated(name, root, evidence, lengths)
    present = seen != pcfg.PAD
    assert inside.likelihood(name, root, evidence, lengths) == pytest.approx(totals, rel=1e-12)
    expected = (slopes * own)[present]
    expected /= expected.sum(-1, keepdims=True)
    posteriors = inside.best(name, root, seen, lengths, 0.4, kind, hide)
    assert posteriors[present] == pytest.approx(expected, abs=1e-12)
    assert np.isnan(posteriors[~present]).all()


@pytest.mark.parametrize(("name", "root"), [("cfg3b", 13), ("cfg3f", 15), ("cfg3h", 17), ("cfg3i", 20)])
def test_without_evidence_the_likelihood_is_the_law_of_the_length(name: str, root: int) -> None:
    least, most = pcfg.extent(name, root)
    at = np.arange(least - 1, min(most, least + 30) + 1)
    likelihoods = inside.likelihood(name, root, np.ones((len(at), int(at.max()), 3)), at)
    assert likelihoods == pytest.approx(pcfg.length_law(name, root)[at], abs=1e-14)


@pytest.mark.parametrize("root", [13, 15])
def test_strings_have_the_probability_of_their_derivations_and_others_none(root: int) -> None:
    law: dict[tuple[int, ...], float] = {}
    for string, share in zip(*pcfg.derivations("cfg3b", root), strict=True):
        law[string] = law.get(string, 0.0) + share
    known = list(law)[::20]
    others = [(*string[:-1], string[-1] % 3 + 1) for string in known]
    some = known + others
    lengths = np.array([len(string) for string in some])
    tokens = pcfg.padded(np.concatenate([np.array(string, np.uint8) - 1 for string in some]), lengths)[:, 1:]
    probabilities = inside.string_probabilities("cfg3b", root, tokens, lengths)
    expected = [law.get(string, 0.0) for string in some]
    assert probabilities / 3.0**lengths == pytest.approx(expected, rel=1e-12, abs=1e-30)
    assert (probabilities[: len(known)] > 0).all() and (probabilities == 0).any()


def test_full_strings_stay_within_range() -> None:
    words, seen, _, lengths = masked("cfg3b", 22, 2, 0.3)
    posteriors = inside.best("cfg3b", 22, seen, lengths, 0.3)
    assert np.isfinite(posteriors[seen != pcfg.PAD]).all()
    chosen = np.take_along_axis(posteriors, np.minimum(words, 2)[..., None].astype(int), -1)[seen == pcfg.MASK]
    assert chosen.mean() > 0.8


def test_the_channel_is_that_of_masks() -> None:
    tokens = np.repeat(np.arange(3, dtype=np.uint8), 200_000)
    shown, kind = pcfg.mask(stream(3, "test", "channel"), tokens, 0.3)
    known = inside.channel(0.3)
    assert known.sum(0) == pytest.approx(1)
    for a, b in itertools.product(range(3), (0, 1, 2, pcfg.MASK)):
        assert (shown[tokens == a] == b).mean() == pytest.approx(known[b, a], abs=4 * math.sqrt(0.25 / 200_000))
    chosen = kind != pcfg.NONE
    assert (shown[chosen] == tokens[chosen]).mean() == pytest.approx(inside.channel(1.0)[0, 0], abs=0.005)
    with pytest.raises(SandglassError, match="what became of each token"):
        inside.evidence(shown[None], 0.3, None, True)


def test_hidden_positions_say_nothing() -> None:
    _, seen, kind, _ = masked("cfg3b", 13, 20, 0.5)
    other = np.where((kind != 0) & (seen < 3), (seen + 1) % 3, seen).astype(np.uint8)
    assert (other != seen).any()
    pair = [inside.evidence(each, 0.5, kind, True) for each in (seen, other)]
    assert (pair[0] == pair[1]).all()
    assert (inside.evidence(seen, 0.5) != inside.evidence(other, 0.5)).any()


def test_windows_are_those_of_definition_25() -> None:
    place, lengths = np.array([4, 0, 7]), np.array([9, 9, 8])
    for n, positions in (
        (2, ([3, 4], [0], [6, 7])),
        (3, ([3, 4, 5], [0, 1], [6, 7])),
        (4, ([2, 3, 4, 5], [0, 1], [5, 6, 7])),
        (7, ([1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3], [4, 5, 6, 7])),
    ):
        windows = pcfg.window(place, n, lengths, 10)
        assert [np.flatnonzero(row).tolist() for row in windows] == list(positions)
    with pytest.raises(SandglassError, match="outside its sentence"):
        pcfg.window(np.array([8]), 3, np.array([8]), 10)


@pytest.mark.parametrize("n", [2, 3, 7])
def test_distances_are_those_of_enumerated_posteriors(n: int) -> None:
    words, _, _, lengths = masked("cfg3b", 13, 8, 0.3)
    place = np.full(8, 6)
    robust, close = (part[0] for part in inside.distances("cfg3b", 13, words, lengths, place, [n], 0.3, True))
    strings, chances = pcfg.derivations("cfg3b", 13)
    for row in range(8):
        own = [(np.array(s) - 1, c) for s, c in zip(strings, chances, strict=True) if len(s) == lengths[row]]
        low, high = 6 - -(-(n - 1) // 2), 6 + (n - 1) // 2
        window = [at for at in range(int(lengths[row])) if low <= at <= high]
        outside = [at for at in range(int(lengths[row])) if at not in window]

        def given(seen: list[int], row: int = row, own: list[Any] = own) -> NDArray[np.float64]:
            masses = np.zeros(3)
            for string, chance in own:
                if (string[seen] == words[row, seen]).all():
                    masses[string[6]] += chance
            return masses / masses.sum()

        all_others = given([at for at in range(int(lengths[row])) if at != 6])
        assert robust[row] == pytest.approx(np.abs(all_others - given(outside)).sum() / 2, abs=1e-12)
        assert close[row] == pytest.approx(
            np.abs(all_others - given([at for at in window if at != 6])).sum() / 2, abs=1e-12
        )


def spans(name: str, symbol: int) -> list[tuple[tuple[int, ...], tuple[int, ...], float]]:
    """Return strings, of each token the largest level that ends with it, and probabilities of all derivations."""
    if symbol <= 3:
        return [((symbol,), (1,), 1.0)]
    derivations = []
    for side in pcfg.grammar(name).rules[symbol]:
        for parts in itertools.product(*(spans(name, child) for child in side)):
            levels = [*itertools.chain(*(part[1] for part in parts))]
            levels[-1] = pcfg.level(symbol)
            chance = math.prod(part[2] for part in parts) / len(pcfg.grammar(name).rules[symbol])
            derivations.append((tuple(itertools.chain(*(part[0] for part in parts))), tuple(levels), chance))
    return derivations


@pytest.mark.parametrize(("name", "root"), [("cfg3b", 13), ("cfg3f", 11), ("cfg3h", 10)])
def test_next_tokens_are_those_of_all_derivations(name: str, root: int) -> None:
    known = spans(name, root)
    words, _, _, lengths = masked(name, root, 4, 0.3)
    for level in range(1, pcfg.level(root) + 1):
        distributions = inside.following(name, root, words, level)
        for row, at in itertools.product(range(4), range(words.shape[1])):
            if at >= lengths[row]:
                continue
            counts = np.zeros(3)
            for string, levels, chance in known:
                prefix = np.array(string[:at]) - 1
                if len(string) > at and levels[at] >= level and (prefix == words[row, :at]).all():
                    counts[string[at] - 1] += chance
            if counts.sum():
                assert distributions[row, at] == pytest.approx(counts / counts.sum(), abs=1e-12)
            else:
                assert np.isnan(distributions[row, at]).all()


def test_the_plateau_is_that_of_the_marginals() -> None:
    law = np.array([0.5, 0.3, 0.2])
    loss, accuracy = inside.plateau(law)
    shown = {pcfg.MASK: 0.8 * law} | {o: law * (0.1 * (np.arange(3) == o) + 0.1 / 3) for o in range(3)}
    assert loss == pytest.approx(-sum((p * np.log(p / p.sum())).sum() for p in shown.values()))
    assert accuracy == pytest.approx(sum(p.max() for p in shown.values()))


# --- attention ---------------------------------------------------------------------------------------------------


def every(d: int) -> NDArray[np.int64]:
    return np.array(list(itertools.product((0, 1), repeat=d)))


@pytest.mark.parametrize("c", [0.5, 1.0, 2.0, 6.0])
def test_cases_stand_for_all_strings(c: float) -> None:
    bits = every(9)
    signs = 1 - 2 * (bits[:, :3].sum(1) % 2)
    built = attention.selecting(9, range(3), c)
    outputs = built(bits)
    right, off, mass = attention.measured(built, 9, 3)
    assert right == pytest.approx((outputs * signs > 0).mean(), abs=1e-12)
    assert off == pytest.approx(np.abs(outputs - signs).max(), abs=1e-9)
    assert mass == pytest.approx(attention.off_mass(9, 3, c), abs=1e-12)


def test_selection_is_exact_from_its_threshold_on_and_fails_below() -> None:
    for d, k in ((9, 3), (12, 4), (20, 6)):
        least = attention.threshold(d, k)
        for c in (least, least + 3):
            assert attention.measured(attention.selecting(d, range(k), c), d, k)[:2] == (
                1.0,
                pytest.approx(0, abs=1e-9),
            )
        assert attention.measured(attention.selecting(d, range(k), 1.0), d, k)[0] < 0.9


@pytest.mark.parametrize("scaled", [True, False])
def test_spreading_computes_any_support(scaled: bool) -> None:
    bits, support = every(8), [1, 4, 7]
    signs = 1 - 2 * (bits[:, support].sum(1) % 2)
    built = attention.spreading(8, support, scaled)
    assert built(bits) == pytest.approx(signs, abs=1e-9)
    assert built.attention(bits) == pytest.approx(1 / 8)
    assert np.abs(attention.spreading(8, support, bias=3)(bits)).max() == 0  # the printed bias


def test_indicators_reach_as_far_as_the_lemma_says() -> None:
    built = attention.interpolation([0.0, 1.0], [[1.0], [0.0]], 1.0)
    assert built(np.array([[-0.25], [0.25], [0.375], [0.5], [0.75]]))[:, 0] == pytest.approx([1, 1, 0.5, 0, 0])
    with pytest.raises(SandglassError, match="must be smaller"):
        list(attention.cases(3, 3))


# --- theory and experiment ---------------------------------------------------------------------------------------

LENGTHS = SimpleNamespace(study="distillation", sentences=300, parsed=5, rate=0.3)
ORACLE = SimpleNamespace(study="distillation", strings=2, sentences=200, full=100, rate=0.3, roots=[13])
SELECTION = SimpleNamespace(study="distillation", sizes=[[20, 6], [100, 6]], repeats=2)


@pytest.mark.parametrize(("module", "entry"), [(lengths, LENGTHS), (oracle, ORACLE), (selection, SELECTION)])
def test_theory_holds(module: Any, entry: Any) -> None:
    checks = module.check(entry, "distillation-theory", 1)
    assert checks.filter(~pl.col("passed"))["check"].to_list() == []
    judged = {(claim, part) for claim, parts in claims.PARTS.items() for part in parts}
    assert set(checks.select("claim", "part").rows()) <= judged | {("33", part) for part in claims.SHOWN}
    evidence = checks.filter(pl.col("erratum") != "").group_by("erratum").agg(pl.col("form").unique().sort())
    assert all(forms == ["corrected", "printed"] for forms in evidence["form"].to_list())


def test_a_predictor_that_is_wrong_about_itself_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    best = inside.best
    monkeypatch.setattr(
        inside, "best", lambda *a, **k: best(*a, **k) ** 2 / (best(*a, **k) ** 2).sum(-1, keepdims=True)
    )
    checks = pl.DataFrame(list(oracle._calibrated(ORACLE, stream(1, "test", "wrong"))))  # type: ignore[arg-type]
    assert (checks["measured"] > checks["bound"]).any()


def test_the_experiment_makes_its_tables_and_figures() -> None:
    entry = SimpleNamespace(
        sentences=200,
        truncated=40,
        full=4,
        roots=[13],
        rates=[0.3],
        ngrams=[3, 7],
        levels=[3],
        sizes=[[20, 6]],
        sharpness=[1.0, 4.0],
        tables=list(SCHEMAS),
    )
    context = Inputs("distillation", "distillation-grammars", entry, None, "smoke", 1, "0" * 32)  # type: ignore[arg-type]
    tables = grammars.analyse(context)
    made = finished(tables, SCHEMAS, context)
    for name, frame in made.items():
        SCHEMAS[name].validate(frame)
    table = made["oracle"].filter(pl.col("quantity") == "acc")
    off = (table["value"] - table["realised"]).abs()
    assert off.max() < 0.15  # type: ignore[operator]
    assert set(table["grammar"]) == set(pcfg.NAMES)
    exact = made["constructions"].filter(pl.col("c").is_null() | (pl.col("c") >= pl.col("threshold_c")))
    assert exact["accuracy"].to_list() == [1.0] * exact.height and exact.height == 3
    results = SimpleNamespace(table=lambda name: made[name])
    for name in ("grammars", "lengths", "parse_tree", "ceilings", "windows", "constructions"):
        chart, data = getattr(drawings, name)(results)
        assert data.height and charts.specification(chart)["description"]
