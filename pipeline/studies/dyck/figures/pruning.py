"""A random Transformer pruned to a trained one (DYCK-TH6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.studies.dyck.figures.common import PROBE_TEXT, map_data, map_panel
from pipeline.studies.dyck.names import PARENT, PRUNED, TARGET

if TYPE_CHECKING:
    from pipeline.kit.results import Results

PRUNING_CELL = 11  # pixels: three maps side by side


def pruning_maps(context: Results) -> Figure:
    """Attention of a trained target (ours) beside that of a random parent, before and after pruning."""
    maps, demo = context.table("pruning_maps"), context.table("pruning_demo")
    frames, rows = [], []
    for layer in maps["layer"].unique().sort():
        panels = []
        for network in (TARGET, PARENT, PRUNED):
            weights = maps.filter(layer=layer, network=network)
            if not weights.height:
                continue
            own = f"{network}, layer {weights['network_layer'][0]}"
            frame = map_data(weights.with_columns(run=pl.lit(network), replica=pl.lit(0)), own)
            frames.append(frame.with_columns(target_layer=pl.lit(layer)))
            panels.append(map_panel(frame, _demo_told(demo, weights, layer), PRUNING_CELL))
        rows.append(alt.hconcat(*panels, spacing=22))
    title, words = _pruning_title(demo)
    if not rows:
        return charts.empty(str(title.text), "no model to show")
    figure = alt.vconcat(*rows, spacing=22).resolve_scale(color="shared")
    return figure.properties(title=title, description=words), pl.concat(frames)


def _demo_told(demo: pl.DataFrame, weights: pl.DataFrame, layer: int) -> list[str]:
    """Return what the panel of a network says below its name: in the first row its accuracy, then nothing."""
    row = _demo_row(demo, weights["network"][0], weights["candidates"][0])
    return [f"bracket accuracy {row['acc_close']:.3f}"] if layer == 1 else []


def _demo_row(demo: pl.DataFrame, network: str, candidates: int | None) -> dict[str, Any]:
    return demo.filter(pl.col("network") == network, pl.col("candidates").eq_missing(candidates)).row(0, named=True)


def _pruning_title(demo: pl.DataFrame) -> tuple[alt.TitleParams, str]:
    text = "A random Transformer, pruned to a trained one"
    if not demo.height:
        return alt.TitleParams(text), f"{text}: no model to show."
    row = _demo_row(demo, PRUNED, max(demo["candidates"].drop_nulls()))
    target = _demo_row(demo, TARGET, None)
    parent = _demo_row(demo, PARENT, row["candidates"])
    subtitle = [
        f"Target: {target['n_layers']} layers trained on Dyck strings. Parent: {row['n_layers']} layers, "
        f"{row['weights'] / 1e6:.0f} million random weights.",
        f"Pruned: {row['kept']:,} of these, none changed, all others zero; maps within "
        f"{row['map_distance']:.0e} of the target's (‖A − B‖²).",
        f"Probe without start token; boxes: the last unmatched open bracket. Accuracy on {row['n_sequences']} "
        "held-out strings.",
    ]
    words = (
        f"{text}, on {PROBE_TEXT} without start token: attention of the target, of the random parent and of the "
        f"parent pruned. Bracket accuracy: target {target['acc_close']:.3f}, parent {parent['acc_close']:.3f}, "
        f"pruned {row['acc_close']:.3f}."
    )
    return alt.TitleParams(text, subtitle=subtitle), words
