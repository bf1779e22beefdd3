"""A random Transformer pruned to a trained one (DYCK-TH6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline.kit import plots
from pipeline.kit.charts import Figure
from pipeline.studies.dyck.figures.common import BOXES, NO_MODEL, PROBE_TEXT, map_data, map_panel
from pipeline.studies.dyck.names import PARENT, PRUNED, TARGET

if TYPE_CHECKING:
    from pipeline.kit.results import Results

PRUNING_CELL = 11  # pixels: three maps side by side


@plots.drawn("A random Transformer, pruned to a trained one")
def pruning_maps(context: Results) -> Figure:
    """Attention of a trained target (ours) beside that of a random parent, before and after pruning."""
    maps, demo = plots.some(context.table("pruning_maps"), NO_MODEL), context.table("pruning_demo")
    frames, panels = [], []
    for layer in maps["layer"].unique().sort():
        for network in (TARGET, PARENT, PRUNED):
            weights = maps.filter(layer=layer, network=network)
            if not weights.height:
                continue
            own = f"{network}, layer {weights['network_layer'][0]}"
            frame = map_data(weights.with_columns(run=pl.lit(network), replica=pl.lit(0)), own)
            frames.append(frame.with_columns(target_layer=pl.lit(layer)))
            right = _demo(demo, network, weights["candidates"][0])["acc_close"]
            panels.append(map_panel(frame, [f"bracket accuracy {right:.3f}"] if layer == 1 else [], PRUNING_CELL))
    pruned = _demo(demo, PRUNED, max(demo["candidates"].drop_nulls()))
    target, parent = _demo(demo, TARGET, None), _demo(demo, PARENT, pruned["candidates"])
    return plots.figure(
        plots.grid(panels, maps["network"].n_unique()),
        pl.concat(frames),
        f"A random Transformer, pruned to {pruned['kept']:,} of its weights: accuracy {pruned['acc_close']:.3f}, "
        f"before {parent['acc_close']:.3f}, its target {target['acc_close']:.3f}",
        f"Target: {target['n_layers']} layers trained on Dyck strings. Parent: {pruned['n_layers']} layers, "
        f"{plots.about(pruned['weights'] / 1e6)} million random weights. Pruned: none of those kept is changed, all "
        f"others are zero; maps within {pruned['map_distance']:.0e} of the target’s (‖A − B‖²)",
        f"On {PROBE_TEXT} without start token; {BOXES}. Accuracy on {pruned['n_sequences']} held-out strings",
        told="Attention of the target, of the random parent and of the parent pruned.",
    )


def _demo(demo: pl.DataFrame, network: str, candidates: int | None) -> dict[str, Any]:
    return demo.filter(pl.col("network") == network, pl.col("candidates").eq_missing(candidates)).row(0, named=True)
