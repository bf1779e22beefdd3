"""Translators, how they are read out, and what their translations and attention are worth."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pipeline.errors import SandglassError
from pipeline.kit.streams import stream
from pipeline.languages import synmt
from pipeline.languages.synmt import BOS, EOS, PAD, PART
from pipeline.models.parallel import translator
from pipeline.models.parallel.translator import Spec
from pipeline.studies.parallel import decoding
from pipeline.studies.parallel.measures import attention, published, translation
from pipeline.studies.parallel.measures.translation import Test as Reference
from pipeline.training.objectives.translation import MASK, Objective, likeliest, noised

LEXICON = synmt.Lexicon(1)
WORDS = synmt.sample_words(stream(1, "test"), 7, LEXICON, 2, 6)
SOURCE = torch.from_numpy(LEXICON.source(WORDS))
TARGET = torch.from_numpy(synmt.translate(LEXICON, WORDS, *synmt.draw(stream(2, "test"), WORDS, 1.0, 0.6), 14))
SHAPES = [(causal, positional, buckets) for causal in (False, True) for positional, buckets in ((True, 0), (False, 8))]


def spec(causal: bool, positional: bool = True, buckets: int = 0, width: int = 16) -> Spec:
    return Spec(69, width, 2, 2 * width, 2, 2, 14, causal, positional, buckets)


def weights(of: Spec, replicas: int = 1) -> dict[str, Tensor]:
    models = [translator.initial(of, stream(r, "weights")) for r in range(replicas)]
    for r, model in enumerate(models):
        model |= {n: stream(r, "bias").normal(size=v.shape) for n, v in model.items() if n.endswith("bias")}
    return {n: torch.tensor(np.stack([m[n] for m in models]), dtype=torch.float32) for n in models[0]}


def one(params: dict[str, Tensor], replica: int) -> dict[str, Tensor]:
    return {name: value[replica : replica + 1] for name, value in params.items()}


def logits(of: Spec, params: dict[str, Tensor], source: Tensor, target: Tensor) -> Tensor:
    """Logits (R, B, T, V), of padding 0."""
    memory, _ = translator.encode(of, params, source)
    (found, at), _ = translator.decode(of, params, target, memory)
    whole = torch.zeros(*target.shape[:1], target[0].numel(), found.shape[-1])
    return whole.scatter(1, at[..., None].expand(found.shape), found).view(*target.shape, -1)


@pytest.mark.parametrize(("causal", "positional", "buckets"), SHAPES)
def test_padding_and_company_change_nothing(causal: bool, positional: bool, buckets: int) -> None:
    of = spec(causal, positional, buckets)
    params = weights(of, 2)
    both = logits(of, params, torch.stack([SOURCE, SOURCE.flip(0)]), torch.stack([TARGET, TARGET.flip(0)]))
    for replica, order in enumerate((range(7), range(6, -1, -1))):
        for place, i in enumerate(order):
            s, t = int((SOURCE[i] != PAD).sum()), int((TARGET[i] != PAD).sum())
            alone = logits(of, one(params, replica), SOURCE[None, i : i + 1, :s], TARGET[None, i : i + 1, :t])
            assert torch.allclose(alone[0, 0], both[replica, place, :t], atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_who_sees_what_follows(causal: bool) -> None:
    of = spec(causal)
    params, other = weights(of), TARGET.clone()
    last = int((TARGET[0] != PAD).sum()) - 1
    other[0, last] = PART
    before, after = (logits(of, params, SOURCE[None], each[None])[0, 0, :last] for each in (TARGET, other))
    assert torch.allclose(before, after, atol=1e-6) == causal


def test_sizes() -> None:
    """[num] 0.27 million weights of the stand-in, 67 of the published model: tied, position in the decoder alone."""

    def count(of: Spec) -> float:
        return sum(math.prod(shape) for shape in translator.shapes(of).values()) / 1e6

    assert count(Spec(69, 64, 4, 256, 2, 2, 22, False, True, 0)) == pytest.approx(0.27, abs=0.005)
    assert count(Spec(32128, 512, 8, 2048, 6, 6, 256, False, True, 32)) == pytest.approx(67.0, abs=0.15)


def test_too_long() -> None:
    of = spec(False)
    with pytest.raises(SandglassError, match="a source of 15 tokens is longer than the 14 positions"):
        translator.encode(of, weights(of), torch.ones(1, 1, 15, dtype=torch.long))


def test_relative_buckets() -> None:
    """As T5: eight buckets each way here; short distances have their own."""
    distance = torch.tensor([-200, -5, -1, 0, 1, 3, 4, 200])
    assert translator.relative_buckets(distance, 16, both=True).tolist() == [7, 4, 1, 0, 9, 11, 12, 15]
    assert translator.relative_buckets(distance, 16, both=False)[3:].tolist() == [0] * 5


@pytest.mark.parametrize("buckets", [0, 8])
def test_greedy_reads_itself(buckets: int) -> None:
    of = spec(True, buckets=buckets)
    params = weights(of)
    said, passes = decoding.greedy(of, params, SOURCE)
    read = torch.cat([torch.full((7, 1), BOS), said[:, :-1]], 1)
    found = logits(of, params, SOURCE[None], torch.where(said != PAD, read, PAD)[None])[0]
    found[..., [PAD, BOS, synmt.LEN]] = -math.inf
    inside = said != PAD
    inside[:, -1] = False  # where positions end, EOS is forced
    assert (found.argmax(-1) == said)[inside].all()
    assert ((said == EOS).sum(1) == 1).all() and (passes == (said != PAD).sum(1)).all()


def test_refinement() -> None:
    of = spec(False)
    params = weights(of)
    memory, _ = translator.encode(of, params, SOURCE[None])
    sizes = (TARGET != PAD).sum(1)
    start = decoding.framed(torch.from_numpy(stream(3, "start").integers(5, 69, (7, 14))), sizes)
    found = decoding.refine(of, params, memory, start, 6)
    state = start
    for t in range(6):
        (scores, at), _ = translator.decode(of, params, state[None], memory)
        new = likeliest(scores, at, state[None])[0]
        chosen = scores.log_softmax(-1)[0].gather(1, new.flatten()[at[0]][:, None])[:, 0]
        sums = torch.zeros(7).index_add(0, at[0] // 14, chosen)
        going = found.passes(6) > t
        assert (new == found.states[t]).all()
        assert torch.allclose(sums[going], found.log_p[t][going], atol=1e-4)
        state = new
    assert ((found.states == EOS).sum(-1) == 1).all() and ((found.states[-1] != PAD).sum(1) == sizes).all()
    stable = [next(t + 1 for t in range(6) if t == 5 or not found.changed[t, b]) for b in range(7)]
    assert found.passes(6).tolist() == stable and found.passes(2).max() <= 2


def test_beam_of_one_is_the_likeliest_length() -> None:
    of = spec(False)
    params = weights(of)
    memory, _ = translator.encode(of, params, SOURCE[None])
    start = torch.from_numpy(stream(4, "start").integers(5, 69, (7, 14)))
    sizes = decoding.lengths(memory, 1)[0][:, 0]
    alone = decoding.refine(of, params, memory, decoding.framed(start, sizes), 3)
    assert (decoding.with_beam(of, params, memory, start, 3, 1).tokens == alone.states[-1]).all()
    several, logs = decoding.lengths(memory, 4)
    scores = []
    for place in range(4):
        own = decoding.refine(of, params, memory, decoding.framed(start, several[:, place]), 3)
        scores.append(own.log_p[-1] + logs[:, place])
    best = several.gather(1, torch.stack(scores, 1).argmax(1)[:, None])[:, 0]
    chosen = decoding.with_beam(of, params, memory, start, 3, 4).tokens
    assert ((chosen != PAD).sum(1) == best).all()


@pytest.mark.parametrize("first", [1, 2, 3])
def test_remasking_begins_with_a_pass_and_is_no_rest(first: int) -> None:
    """Stutter takes the token of the state that the pass read, from a pass on, but not after the last one; a sentence
    rests when a pass says what it read, not when remasking undoes what it said."""
    of = spec(False)
    params = weights(of)
    memory, _ = translator.encode(of, params, SOURCE[None])
    start = decoding.framed(torch.from_numpy(stream(4, "start").integers(5, 69, (7, 14))), torch.full((7,), 14))
    found = decoding.refine(of, params, memory, start, 5, remask=first)
    state, undone = start, 0
    for t in range(5):
        (scores, at), _ = translator.decode(of, params, state[None], memory)
        said = likeliest(scores, at, state[None])[0]
        new = decoding._remasked(said, state) if first <= t + 1 < 5 else said
        going = found.passes(5) > t
        assert (found.changed[t] == (said != state).any(1))[going].all()
        assert (new == found.states[t])[going].all()
        undone += int((going & (new == state).all(1) & (said != state).any(1)).sum())
        state = found.states[t]
    plain = decoding.refine(of, params, memory, start, 5)
    assert torch.equal(found.states[: first - 1], plain.states[: first - 1])
    assert undone or first > 1


def test_remasking_and_taking_out() -> None:
    said, before = torch.tensor([[7, 7, 8, 8, 8, EOS]]), torch.tensor([[1 + 8, 10, 11, 12, 13, EOS]])
    assert decoding._remasked(said, before).tolist() == [[7, 10, 8, 12, 13, EOS]]
    tokens = torch.tensor([[5, 5, 6, 6, 6, EOS, PAD], [7, 8, 7, EOS, PAD, PAD, PAD]])
    assert decoding.deduplicated(tokens).tolist() == [[5, 6, EOS, PAD, PAD, PAD, PAD], tokens[1].tolist()]


# --- training ---


def batch(settings: dict[str, Any], rows: np.ndarray) -> tuple[Objective, dict[str, Tensor]]:
    data = {"source": SOURCE[None].numpy(), "target": TARGET[None].numpy()}
    objective = Objective(data, {"start": "random", "vocabulary": 69, "stages": 2, "unmask": 0.15} | settings)
    arrays = objective.collate([0], [rows], [lambda: stream(5, "noise")])
    return objective, {name: torch.from_numpy(array) for name, array in arrays.items()}


@pytest.mark.parametrize("start", ["random", MASK])
def test_noise(start: str) -> None:
    """About the share u of tokens is kept; EOS and PAD stand; what is put in is never special."""
    rows = np.repeat(np.arange(7), 300)
    _, found = batch({"causal": False, "start": start, "unmask": 0.4}, rows)
    target, read = found["target"][0], found["start"][0]
    assert (read[target <= EOS] == target[target <= EOS]).all()
    token = target > EOS
    put = read[token & (read != target)]
    assert put.min() >= synmt.SPECIAL and (start == "random" or set(put.tolist()) == {68})
    assert (read == target)[token].float().mean() == pytest.approx(0.4 + 0.6 / 64 * (start == "random"), abs=0.02)


def test_stages() -> None:
    """The loss is the mean over stages, each reading what the one before found likeliest, and that of the length."""
    of = spec(False)
    params = weights(of)
    objective, arrays = batch({"causal": False}, np.arange(7))
    found = objective.loss(partial(translator.forward, of, params, torch.zeros(0)), arrays)
    target, read = arrays["target"], arrays["start"]
    memory, _ = translator.encode(of, params, arrays["source"])
    losses = []
    for _ in range(2):
        (scores, at), _ = translator.decode(of, params, read, memory)
        losses.append(torch.nn.functional.cross_entropy(scores[0], target[0].flatten()[at[0]]))
        read = likeliest(scores, at, target)
    assert memory.lengths is not None
    own = torch.nn.functional.cross_entropy(memory.lengths[0], (target[0] != PAD).sum(-1))
    assert found["loss"].item() == pytest.approx(float(sum(losses) / 2 + own), rel=1e-5)
    assert found["length_loss"].item() == pytest.approx(float(own), rel=1e-5)


def test_word_by_word_reads_what_is_before() -> None:
    objective, arrays = batch({"causal": True, "stages": 1}, np.arange(7))
    assert (arrays["start"][0, :, 0] == BOS).all()
    inside = arrays["target"][0, :, 1:] != PAD
    assert (arrays["start"][0, :, 1:][inside] == arrays["target"][0, :, :-1][inside]).all()
    of = spec(True)
    params = {name: value.requires_grad_() for name, value in weights(of).items()}
    loss = objective.loss(partial(translator.forward, of, params, torch.zeros(0)), arrays)["loss"].sum()
    gradients = torch.autograd.grad(loss, list(params.values()))
    assert all(gradient.abs().sum() > 0 for gradient in gradients)


def test_published_shape_takes_a_step() -> None:
    """The published widths, heads, layers and relative positions, with a small vocabulary."""
    of = Spec(69, 512, 8, 2048, 6, 6, 16, False, True, 32)
    params = {name: value.requires_grad_() for name, value in weights(of).items()}
    objective, arrays = batch({"causal": False}, np.arange(2))
    forward = partial(translator.forward, of, params, torch.zeros(0))
    first = objective.loss(forward, arrays)["loss"].sum()
    gradients = torch.autograd.grad(first, list(params.values()))
    with torch.no_grad():
        for value, gradient in zip(params.values(), gradients, strict=True):
            value.sub_(0.02 * gradient / (gradient.norm() + 1e-9))
        assert objective.loss(forward, arrays)["loss"].sum() < first


# --- measures ---


def ids(*rows: list[int]) -> np.ndarray:
    found = np.full((len(rows), max(map(len, rows)) + 1), PAD)
    for row, own in zip(found, rows, strict=True):
        row[: len(own) + 1] = [*own, EOS]
    return found


def test_bleu_by_hand() -> None:
    same = ids([5, 6, 7, 8], [9, 10, 11, 12, 13])
    assert translation.bleu(same, same) == pytest.approx(100)
    # precisions 3/4, 1/3, then none of 2 and none of 1: 1/(2 * 2), 1/(4 * 1)
    expected = 100 * (3 / 4 * 1 / 3 * 1 / 4 * 1 / 4) ** 0.25
    assert translation.bleu(ids([5, 6, 7, 8]), ids([5, 6, 9, 8])) == pytest.approx(expected)
    short = 100 * math.exp(1 - 6 / 5)
    assert translation.bleu(ids([5, 6, 7, 8, 9]), ids([5, 6, 7, 8, 9, 10])) == pytest.approx(short)
    assert translation.bleu(ids([5, 5, 5, 5, 5]), ids([6, 7, 8, 9, 10])) == 0


def test_bleu_is_sacrebleus() -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    rng = stream(6, "bleu")
    for noise in (0.0, 0.1, 0.5, 0.9):
        references, said = [], []
        for _ in range(40):
            reference = rng.integers(5, 30, rng.integers(5, 12)).tolist()
            hidden = rng.random(len(reference)) < noise
            own = np.where(hidden, rng.integers(5, 30, len(reference)), reference).tolist()
            references.append(reference)
            said.append(own[: rng.integers(4, len(own) + 1)])
        texts = [[" ".join(map(str, row)) for row in rows] for rows in (said, references)]
        theirs = sacrebleu.corpus_bleu(texts[0], [texts[1]], tokenize="none", smooth_method="exp", force=True).score
        assert translation.bleu(ids(*said), ids(*references)) == pytest.approx(theirs, abs=1e-6)


def test_sentences_are_judged_exactly() -> None:
    words = np.array([[0, 9, 20]])
    laws = [synmt.law(LEXICON, words, alpha, 0.6, 8) for alpha in (0.0, 1.0)]
    reference = synmt.translate(LEXICON, words, np.array([0]), np.array([0]), 8)
    other = synmt.translate(LEXICON, words, np.array([1]), np.array([2]), 8)
    inside = other.copy()  # the particle between both tokens of a word
    at = int(np.flatnonzero(other[0] == PART)[0])
    inside[0, at : at + 2] = inside[0, [at + 1, at]]
    repeated = reference.copy()
    repeated[0, 2] = repeated[0, 1]
    judged = [Reference(*laws, reference).sentences(said) for said in (reference, other, inside, repeated)]
    assert [bool(each.valid[0]) for each in judged] == [True, True, False, False]
    assert [bool(each.exact[0]) for each in judged] == [True, False, False, False]
    assert [int(each.stutter[0]) for each in judged] == [0, 0, 0, 1]
    assert judged[0].log_p[0] == 0 and judged[1].log_p[0] == -math.inf
    found = Reference(*laws, reference).metrics(np.repeat(repeated, 1, 0), np.array([2]), 0.95)
    assert found["stutter_per_100"] == pytest.approx(100 / 5) and found["valid_rate"] == 0


def test_pairs() -> None:
    """Two heads, by hand."""
    double = LEXICON.table[20, 0]
    said = np.array([[5, 5, *double, EOS]])
    own = np.zeros((1, 2, 5, 5))
    own[0, 0, 0, 1], own[0, 0, 1, 0], own[0, 1, 0, 1], own[0, 1, 1, 0] = 0.9, 0.1, 0.5, 0.0
    own[0, :, :, 4], own[0, 1, 1, 2] = 0.3, 0.2
    cross = np.zeros((1, 2, 5, 3))
    cross[0, 0, 0], cross[0, 0, 1] = (1, 0, 0), (0.5, 0.5, 0)
    cross[0, 1, 0], cross[0, 1, 1] = (0.6, 0, 0.4), (0, 0.8, 0.2)
    cross[0, :, 2:] = (0.2, 0.3, 0.5)
    found = attention.pairs(LEXICON, said, own, cross)
    assert found.pos.tolist() == [0, 1, 2] and [attention.CLASSES[c] for c in found.cls] == [
        "stutter",
        "other",
        "fert_pair",
    ]
    first = {name: float(values[0]) for name, values in found.values.items()}
    assert (first["sa_min"], first["sa_mean"], first["sa_max"]) == pytest.approx((0, 0.375, 0.9))
    assert (first["sa_top1"], first["sa_top2"]) == (0.5, 0.75)
    assert (first["tv_min"], first["tv_mean"], first["tv_max"]) == pytest.approx((0.5, 0.65, 0.8))
    assert first["cos_min"] == pytest.approx(1 - 1 / math.sqrt(2))
    assert (first["ov1"], first["ov2"]) == (0.5, 1.0)
    assert found.values["tv_max"][2] == 0 and found.values["ov1"][2] == 1


def test_effect() -> None:
    rng = stream(7, "effect")
    one_sample, other = rng.normal(1, 2, 4000), rng.normal(0, 2, 6000)
    assert attention.effect(one_sample, other) == pytest.approx(0.5, abs=0.06)
    assert math.isnan(attention.effect(one_sample[:19], other))


def test_published() -> None:
    rows = list(published.rows())
    assert len(rows) == 18 + 6 * 6 + 2 * 2 + 18 + 10 + 16
    assert {row["table"] for row in rows} == {"B1", "B2", "B3", "B4", "B5"}


def test_noise_of_a_mask_is_an_id_of_its_own() -> None:
    assert set(noised(stream(8, "x"), (3, 4), {"start": MASK, "vocabulary": 70}).flat) == {69}
