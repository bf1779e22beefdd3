"""What is measured of language models: windows, phases, the probe of non-terminals; against plain loops."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from pipeline.kit.streams import one_thread
from pipeline.languages import pcfg
from pipeline.models.distillation import transformer
from pipeline.studies.distillation.measures import phases, probe, rates, windows

EMPTY = torch.zeros(1, 1)


def model(form: str, side: int = 2) -> tuple[Any, dict[str, torch.Tensor]]:
    longest = pcfg.extent("cfg3b", 12)[1] + 1
    spec = transformer.Spec(form, side, 8, 8, longest, 8, 2, 2, 4, False, 0.5, False, 0.0)
    made = transformer.initial(spec, np.random.default_rng(0))
    weights = {name: torch.from_numpy(value)[None].float() for name, value in made.items()}
    return SimpleNamespace(spec=spec, module=transformer, weights=lambda step: weights), weights


def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
    tokens, lengths = pcfg.strings(np.random.default_rng(1), "cfg3b", n, 12)
    return pcfg.padded(tokens, lengths, width=pcfg.extent("cfg3b", 12)[1]), lengths


@pytest.mark.parametrize("task", ["masked", "next"])
def test_distances_against_one_sentence_at_a_time(task: str) -> None:
    """Equations 4.94, 4.95 and 4.100, 4.101: what is masked or hidden is written out for each token."""
    kept, weights = model("bert" if task == "masked" else "gpt2")
    words, lengths = drawn(6)
    widths = [2, 3, 4]
    robust, close = windows.distances(kept, weights, task, words, lengths, widths)
    places = [place for place in windows.places(words.shape[1] - 1) if task == "masked" or place > 0]

    def said(ids: list[int], hidden: set[int], at: int) -> np.ndarray:
        """The distribution of token ``at`` (from 0) of a sentence, in which some are masked or hidden."""
        if task == "masked":
            shown = [pcfg.BOS, *(pcfg.MASK if i in hidden else token for i, token in enumerate(ids))]
            seen, column = [True] * len(shown), at + 1
        else:
            shown = [pcfg.BOS, *ids[:at]]
            seen, column = [-1 not in hidden, *(i not in hidden for i in range(at))], at
        x, visible = torch.tensor(shown)[None, None, None], torch.tensor(seen)[None, None, None]
        logits = transformer.forward(kept.spec, weights, EMPTY, x, visible)[0]
        return logits[0, :, 0, column].double().softmax(-1).numpy()

    for i, n in enumerate(widths):
        expected: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        for at in places:
            for row, length in zip(words, lengths, strict=True):
                if at >= length:
                    continue
                ids = row[1 : 1 + length].tolist()
                everything = set(range(-1 if task == "next" else 0, len(ids)))
                if task == "masked":
                    near = {j for j in range(len(ids)) if at - -(-(n - 1) // 2) <= j <= at + (n - 1) // 2}
                    parts = ({at}, near, (everything - near) | {at})
                else:
                    near = set(range(max(0, at - n + 1), at))  # BOS is no token of the sentence
                    parts = (set(), near - {at - 1}, everything - near)
                whole, without, alone = (said(ids, part, at) for part in parts)
                expected[0].append(np.abs(whole - without).sum(-1) / 2)
                expected[1].append(np.abs(whole - alone).sum(-1) / 2)
        np.testing.assert_allclose(robust[i], np.stack(expected[0], 1), atol=1e-5)
        np.testing.assert_allclose(close[i], np.stack(expected[1], 1), atol=1e-5)
    assert (robust[0] == 0).all() == (task == "next")  # a skip bigram hides nothing


def test_places_lie_apart_from_the_ends() -> None:
    assert windows.places(432) == list(range(30, 421, 30)) and windows.places(27) == [6, 13, 20]


def test_all_strings_of_a_small_grammar_are_read_once_each() -> None:
    """The 512 strings of cfg3b below 13 are as likely; of more than are asked for none is listed."""
    words, lengths = windows._every("cfg3b", 13, 512) or (np.empty(0), np.empty(0))
    assert len(np.unique(words, axis=0)) == len(words) == 512 and set(lengths) <= set(range(12, 19))
    assert (words[:, 0] == pcfg.BOS).all() and ((words != pcfg.PAD).sum(1) == lengths + 1).all()
    drawn_words, _ = pcfg.strings(np.random.default_rng(0), "cfg3b", 50, 13)
    assert set(drawn_words) == set(words[:, 1:][words[:, 1:] != pcfg.PAD])
    assert windows._every("cfg3b", 13, 511) is None


def test_phases_of_a_curve() -> None:
    """The curve of Figure 4.7, read from the graphic: plateau 1.04, 0.52 after 1,000 steps, 0.18 after 2,000."""
    points = [(200, 1.04), (400, 1.04), (600, 0.98), (800, 0.8), (1000, 0.52), (1200, 0.4), (2000, 0.18), (8000, 0.03)]
    course = pl.DataFrame(
        [{"run": "r", "arm": "label", "model": 0, "step": step, "loss": loss} for step, loss in points]
    )
    (row,) = phases.phases(course).iter_rows(named=True)
    assert (row["p2_start"], row["c1"], row["p2_end"]) == (600, 1000, 2000)
    assert row["plateau_loss"] == 1.04 and row["final_loss"] == 0.03
    flat = course.with_columns(loss=pl.lit(1.0))
    (row,) = phases.phases(flat).iter_rows(named=True)
    assert row["p2_start"] is None and row["p2_end"] is None


def test_labels_of_the_probe_are_ancestors() -> None:
    sample = probe.drawn(np.random.default_rng(3), "cfg3b", 15, 20)
    again = pcfg.sample(np.random.default_rng(3), "cfg3b", 20, 15)
    assert probe.levels(15) == [2, 3] and sample.ancestors.shape[:2] == (2, 20)
    for sentence in range(20):
        start = int(again.lengths[:sentence].sum())
        stop = start + int(again.lengths[sentence])
        for place, depth in enumerate((5, 4)):
            symbols = again.ancestors(depth)[start:stop] - min(pcfg.SYMBOLS[depth])
            own = sample.ancestors[place, sentence]
            assert own[1 : 1 + stop - start].tolist() == symbols.tolist()
            assert own[0] == probe.NONE and (own[1 + stop - start :] == probe.NONE).all()
    assert (sample.ends <= (sample.ancestors >= 0)).all() and sample.ends[0].sum() > sample.ends[1].sum()


def test_the_probe_reads_what_is_there_and_nothing_else() -> None:
    """Of states that say the symbol above each token it is right; of states that say nothing, no more than the most
    frequent symbol is."""
    train, test = (probe.drawn(np.random.default_rng(seed), "cfg3b", 15, n) for seed, n in ((0, 200), (1, 60)))
    settings = SimpleNamespace(heads=2, width=8, epochs=30)
    above = {
        words.tobytes(): whole.ancestors[:, i].clip(0) for whole in (train, test) for i, words in enumerate(whole.words)
    }

    def accuracies(tells: bool) -> np.ndarray:
        def forward(spec: Any, weights: Any, table: Any, ids: torch.Tensor, *rest: Any, record: Any) -> Any:
            words = ids[0, 0].numpy()
            e = np.zeros((*words.shape, 8), np.float32)
            if tells:
                for sentence, row in zip(e, words.astype(np.uint8), strict=True):
                    for level, own in enumerate(above[row.tobytes()]):
                        sentence[np.arange(len(own)), 3 * level + own] = 1
            return None, {"last": torch.from_numpy(e)[None, None]}

        kept = SimpleNamespace(spec=SimpleNamespace(side=1, width=8), module=SimpleNamespace(forward=forward))
        weights = {"embed.W": torch.zeros(1, 1)}
        with one_thread():
            return probe.accuracies(kept, weights, train, test, settings, np.random.default_rng(2))  # type: ignore[arg-type]

    signal, nothing = accuracies(True), accuracies(False)
    assert signal.shape == (1, 2, 2) and (signal > 0.9).all()
    assert (nothing[..., 1] < 0.75).all()


def test_the_probe_is_tested_on_strings_that_it_has_not_read() -> None:
    sample = probe.drawn(np.random.default_rng(0), "cfg3b", 10, 90)  # of a grammar of few strings
    train, test = probe.split(np.random.default_rng(1), sample, 0.3)
    strings = [{row.tobytes() for row in part.words} for part in (train, test)]
    assert not strings[0] & strings[1] and len(strings[1]) == round(0.3 * len(strings[0] | strings[1]))
    assert len(train.words) + len(test.words) == 90
    assert test.ancestors.shape == (1, *test.words.shape) == (1, *test.ends.shape[1:])
    assert len(probe.split(np.random.default_rng(1), sample, 0.001)[1].words) > 0


def test_at_the_inflection_is_a_share_of_the_largest() -> None:
    summary = pl.DataFrame(
        {"model": 0, "measure": ["robust"] * 3 + ["close"], "ngram": 3, "step": [1, 2, 3, 1]}
    ).with_columns(q50=pl.Series([0.1, 0.3, 0.4, 9.0]))
    stages = pl.DataFrame({"model": [0], "c1": [2]})
    assert windows.at_inflection(stages, summary).tolist() == [0.3 / 0.4]


def test_the_best_rate_is_the_most_accurate_then_the_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two models side by side, one replica, four rates: three of them end alike, the second in fewer steps."""
    ends = [0.7, 0.7, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9]
    fast = [3, 3, 2, 2, 1, 1, 3, 3]
    course = pl.DataFrame(
        {
            "run": "r",
            "width": 8,
            "heads": 2,
            "arm": "label",
            "model": model,
            "step": step,
            "accuracy": ends[model] if step >= fast[model] else 0.1,
        }
        for model in range(8)
        for step in (1, 2, 3)
    )

    def found(lr: list[float], frame: pl.DataFrame) -> dict[float, str]:
        monkeypatch.setattr(rates.lessons, "courses", lambda context, run: frame)
        context: Any = SimpleNamespace(
            run_header=lambda run: {"lr": lr, "entry": {"side": 2, "replicas": 1}}, settings=SimpleNamespace(risen=0.9)
        )
        table = rates.table(context, "r")
        assert table["n"].to_list() == [2] * len(lr)
        best = rates.best_courses(context, "r", table)["model"].unique().to_list()
        assert [lr[number // 2] for number in best] == table.filter("chosen")["lr"].to_list() * 2
        return dict(table.filter("chosen").select("lr", "place").iter_rows())

    assert found([0.1, 0.2, 0.3, 0.4], course) == {0.3: "inside"}
    assert found([0.3, 0.1, 0.2, 0.4], course) == {0.2: "inside"}  # in the order of rates, not of the file
    assert found([0.1, 0.2], course.filter(pl.col("model") < 4)) == {0.2: "highest"}
    assert found([0.1], course.filter(pl.col("model") < 2)) == {0.1: "only"}
    lost = course.with_columns(accuracy=pl.when(pl.col("model") >= 4).then(float("nan")).otherwise("accuracy"))
    assert found([0.1, 0.2, 0.3, 0.4], lost) == {0.2: "inside"}
