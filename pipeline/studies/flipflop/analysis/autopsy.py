"""The worst glitch of every trained Transformer that errs, taken apart (not in the source)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.languages import flipflop as language
from pipeline.studies.flipflop.measures import autopsies, contrasts, maps, reading
from pipeline.studies.flipflop.measures.contrasts import Row, resampled, share
from pipeline.studies.flipflop.measures.reading import OUT, Config

MOST = {"sparse": 1000, "dense": 400}  # sequences of each set that are searched


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return the worst glitch of each model on each set, and what its heads look at."""
    glitches: list[Row] = []
    heads: list[Row] = []
    with one_thread():
        for config in reading.configs(context).values():
            if config.entry["symbols"] != 2:
                continue
            for row, own in _worst(context, config):
                glitches.append(row)
                heads += own
    if not glitches:
        return {"autopsy": None, "autopsy_heads": None, "contrasts": None}
    table = pl.DataFrame(glitches, infer_schema_length=None)
    return {
        "autopsy": table,
        "autopsy_heads": pl.DataFrame(heads),
        "contrasts": contrasts.table(_contrasts(context, table)),
    }


def _worst(context: Inputs, config: Config) -> Iterator[tuple[Row, list[Row]]]:
    """Yield, for each model and set on which it errs, its wrong answer of the largest margin."""
    sets = reading.held(context, config)
    learned = (config.answers(sets["val"])[0] != language.reads(sets["val"]).target).mean(1)
    for name in OUT:
        tokens = sets[name][: MOST[name]]
        reads = language.reads(tokens)
        logits = np.concatenate(
            [
                config.forward(part[:, :-1])[0].numpy()[:, own.row, 2 * own.pair][..., language.DATA :]
                for part in np.array_split(tokens, -(-tokens.size // reading.CHUNK))
                for own in (language.reads(part),)
            ],
            1,
        )
        margin = np.take_along_axis(logits, (1 - reads.target)[None, :, None], 2)[..., 0]
        margin -= np.take_along_axis(logits, reads.target[None, :, None], 2)[..., 0]
        for i, r in enumerate(config.replicas):
            at = int(margin[i].argmax())
            if margin[i, at] <= 0:
                continue
            row, pair, target = int(reads.row[at]), int(reads.pair[at]), int(reads.target[at])
            cut = autopsies.prefix(tokens[row], pair)
            alone = Config(config.name, config.entry, config.ensemble, [r])

            def answer(inputs: autopsies.Tokens, alone: Config = alone) -> np.ndarray:
                answers: np.ndarray = alone.forward(inputs)[0][0, :, -1, language.DATA :].argmax(-1).numpy()
                return answers

            ignored, every = (autopsies.mend(cut, target, answer, only) for only in (True, False))
            own, summary = _heads(alone, cut, target)
            same = {"run": config.name, "replica": r, "set": name}
            yield (
                same
                | {
                    "family": config.entry["family"], "learned": bool(learned[i] <= context.settings.learned),
                    "string": "".join(language.NAMES[token] for token in cut), "target": target,
                    "margin": float(margin[i, at]), "n_wrong": int((margin[i] > 0).sum()), "pairs": pair,
                    "dist_write": int(reads.dist_write[at]), "dist_info": int(reads.dist_info[at]),
                    "n_writes": int(reads.n_writes[at]),
                    "ignored": len(autopsies.removable(cut, True)), "ignored_removed": ignored.removed,
                    "ignored_exact": ignored.exact, "any_removed": every.removed, "any_exact": every.exact,
                }
                | summary,
                [same | each for each in own],
            )  # fmt: skip


def _heads(alone: Config, cut: autopsies.Tokens, target: int) -> tuple[list[Row], Row]:
    """Return what each head looks at from the wrong read, and the head of the last layer that weighs most."""
    layers = alone.entry["layers"]
    _, recorded = alone.forward(cut[None], maps.names(layers, maps.PATTERN, maps.NORMS))
    pattern, norms = (maps.stacked(recorded, what, layers)[0, :, 0] for what in (maps.PATTERN, maps.NORMS))
    last = int(np.flatnonzero(cut[0:-1:2] == language.WRITE)[-1])
    rows: list[Row] = []
    for (layer, head), _ in np.ndenumerate(pattern[..., 0, 0]):
        weights = pattern[layer, head, -1]
        key = int(weights.argmax())
        rows.append(
            {
                "layer": layer + 1, "head": head + 1, "on_last_write": float(weights[2 * last : 2 * last + 2].sum()),
                "key": key, "weight": float(weights[key]), "looks_at": autopsies.kind(cut, key, last, target),
                "heavy": float((weights * norms[layer, head]).sum()),
            }
        )  # fmt: skip
    top = max((row for row in rows if row["layer"] == layers), key=lambda row: row["heavy"])
    columns = {f"top_{name}": top[name] for name in ("head", "on_last_write", "weight", "looks_at")}
    return rows, columns | {"best_on_last_write": max(row["on_last_write"] for row in rows)}


def _contrasts(context: Inputs, table: pl.DataFrame) -> Iterator[Row]:
    for name in OUT:
        # Models of the factorial share seeds with the baseline's, and those of equal seeds are the same models.
        rows = table.filter(pl.col("learned"), pl.col("family") != "seeds", set=name)
        if rows.height:
            elsewhere = rows["top_looks_at"] != "last write"
            yield from share(context, f"autopsy {name}, elsewhere", elsewhere.to_numpy())
            other = rows["top_looks_at"].str.ends_with("other bit")
            yield from share(context, f"autopsy {name}, other bit", other.to_numpy())
            yield from share(
                context, f"autopsy {name}, one pair", (rows["any_removed"].fill_null(10**6) == 1).to_numpy()
            )
            mended = rows["ignored_removed"].is_not_null()
            yield from share(context, f"autopsy {name}, mended", mended.to_numpy())
            known = rows["ignored_removed"].drop_nulls().cast(pl.Float64).to_numpy()
            yield from resampled(context, f"autopsy {name}, ignored pairs", stats.median, known)
            weight = rows["top_on_last_write"].to_numpy()
            yield from resampled(context, f"autopsy {name}, weight on write", stats.median, weight)
