"""The executable theory: exact and broken solvers, pruning (DYCK-TH1, TH4, TH6)."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.studies.dyck.figures.balance import ACCURACIES
from pipeline.studies.dyck.figures.common import Figure, number
from pipeline.studies.dyck.figures.maps import PROBE_TEXT, map_data, map_panel
from pipeline.studies.dyck.figures.variation import MODEL_LABELS, RANDOM
from schemas.dyck.tables import PARENT, PROBE, PRUNED, TARGET

CLOSED_FORM_16 = "causal-closed-form-16"  # theory check that measures random maps of the probe's size
EXACT, TRAINED = "exact by construction", "trained"
CONFIDENCE = 0.95  # of the slopes of `theory.pruning`
PRUNING_CHECK = r"^pruning-error-l(?<layers>\d+)-n(?<candidates>\d+)-seed(?<seed>\d+)$"  # theory, DYCK-TH6
ERROR_TITLE = "largest relative error of the pruned network (log scale)"
PRUNING_CELL = 11  # pixels: three maps side by side


def exact_solvers(context: Any) -> Figure:
    """DYCK-F11 (ours): attention of solvers that are exact by construction, beside trained models and random maps."""
    rows: list[dict[str, Any]] = []
    for row in _theory_points(context, r"exact-variation-sigma(?<x>[0-9.]+)").iter_rows(named=True):
        rows.append({"what": f"exact, σ = {row['x']:g}", "value": row["measured"], "kind": EXACT})
    table = context.table("variation").filter(
        pl.col("last_layer"), probe_split=PROBE, seq_id=0, head=0, causal=True, start_included=False
    )
    for run, label in MODEL_LABELS.items():
        for row in table.filter(pl.col("variation_mean").is_not_null(), run=run).iter_rows(named=True):
            ends = {"lo": row["ci_lo"], "hi": row["ci_hi"]}
            rows.append({"what": label, "value": row["variation_mean"], "kind": TRAINED} | ends)
    for value in context.theory().filter(check=CLOSED_FORM_16)["measured"]:
        rows.append({"what": RANDOM, "value": value, "kind": RANDOM})
    data = pl.DataFrame(
        rows, schema={"what": pl.String, "kind": pl.String} | dict.fromkeys(("value", "lo", "hi"), pl.Float64)
    ).with_columns(label_at=pl.coalesce("hi", "value"))
    y = alt.Y(
        "what:N",
        sort=data["what"].to_list(),
        title=None,
        axis=alt.Axis(ticks=False, domain=False, labelLimit=200),
    )
    x = alt.X("value:Q", title="attention variation, mean ‖A − B‖² over pairs of models")
    kinds = alt.Scale(domain=[EXACT, TRAINED, RANDOM], range=[charts.GREEN, charts.SKY, charts.GREY])
    base = alt.Chart(data).encode(x=x, y=y)
    bars = base.mark_bar(height=18).encode(
        color=alt.Color("kind:N", title=None, scale=kinds, legend=alt.Legend(orient="bottom"))
    )
    intervals = base.mark_rule(strokeWidth=1.5).encode(x="lo:Q", x2="hi:Q")
    numbers = base.mark_text(align="left", dx=5).encode(
        x="label_at:Q", text=alt.Text("value:Q", format=".2f")
    )
    title = alt.TitleParams(
        "How much attention may vary among models that are never wrong",
        subtitle=[
            "Exact solvers of Theorem 1: logits of spread σ, balanced and else random; every prediction is exact",
            f"Probe {PROBE_TEXT}; trained models without start token, solvers without its row and column",
            "For comparison: trained models, with bootstrap intervals over models, and random causal maps",
        ],
    )
    told = ", ".join(f"{row['what']} {number(row['value'])}" for row in data.iter_rows(named=True))
    words = (
        f"Attention variation of exact solvers, trained models and random maps: {told or 'none measured'}."
    )
    chart = alt.layer(bars, intervals, numbers).properties(width=400, height=alt.Step(28))
    return chart.properties(title=title, description=words), data


def broken_solvers(context: Any) -> Figure:
    """DYCK-TH4 (ours): what noise on balance does, under inserted pairs and at length."""
    shape: dict[str, Any] = {"δ": pl.String, "x": pl.Float64, "y": pl.Float64, "panel": pl.String}
    panels, frames = [], []
    for panel, pattern, x_title, y_title, y_scale in (
        ("(a) inserted pairs", r"pumped-delta(?<delta>[0-9.]+)-pairs(?<x>[0-9]+)", "inserted pairs",
         "distance of two prefixes, h", alt.Scale(type="log", nice=False, padding=8)),
        ("(b) length", r"broken-delta(?<delta>[0-9.]+)-length(?<x>[0-9]+)", "length of the string",
         ACCURACIES["acc_close"], alt.Scale(zero=False)),
    ):  # fmt: skip
        points = _theory_points(context, pattern)
        frame = points.select(
            pl.col("delta").alias("δ"), "x", pl.col("measured").alias("y"), pl.lit(panel).alias("panel")
        )
        frames.append(pl.DataFrame(frame, schema=shape))
        steps = frame["x"].unique().sort().to_list()
        base = alt.Chart(frame).encode(
            x=alt.X(
                "x:Q",
                title=x_title,
                scale=alt.Scale(type="log", nice=False, padding=8),
                axis=alt.Axis(values=steps, format="d"),
            ),
            y=alt.Y("y:Q", title=y_title, scale=y_scale),
            color=alt.Color("δ:N", title="noise δ", legend=alt.Legend(orient="bottom")),
        )
        both = alt.layer(base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=45, opacity=1))
        panels.append(
            both.properties(width=235, height=215, title=alt.TitleParams(panel, fontSize=charts.SIZE))
        )
    data = pl.concat(frames)
    title = alt.TitleParams(
        "Exact solvers with noise of spread δ on the logits of closing brackets",
        subtitle="(a) prefixes that differ in the last open bracket; (b) same solvers on random strings",
    )
    ends = [f"{row['panel'][:3]} δ={row['δ']} {row['y']:.2g}" for row in data.sort("x").unique(
        ["panel", "δ"], keep="last", maintain_order=True).sort("panel", "δ").iter_rows(named=True)]  # fmt: skip
    words = (
        "Without noise, inserted pairs and longer strings change nothing; with it, the distance of two prefixes "
        f"falls with the number of pairs, and accuracy with length. Last points: {', '.join(ends)}."
    )
    return alt.hconcat(*panels, spacing=30).properties(title=title, description=words), data


def _theory_points(context: Any, pattern: str) -> pl.DataFrame:
    """Theory rows whose check matches ``pattern``, with its group ``x`` as a number and other groups as text."""
    found = context.theory().select("check", "measured")
    found = found.with_columns(pl.col("check").str.extract_groups(f"^{pattern}$")).unnest("check")
    return found.drop_nulls("x").with_columns(pl.col("x").cast(pl.Float64))


def pruning_error(context: Any) -> Figure:
    """DYCK-F12: error of a pruned random parent against the candidates per weight, to which its width is linear."""
    theory = context.theory()
    numbers = {row["check"]: row["measured"] for row in theory.iter_rows(named=True)}
    groups = pl.col("check").str.extract_groups(PRUNING_CHECK)
    points = theory.filter(pl.col("check").str.contains(PRUNING_CHECK)).select(
        pl.format("L = {}", groups.struct.field("layers")).alias("target"),
        groups.struct.field("layers").cast(pl.Int32).alias("layers"),
        groups.struct.field("candidates").cast(pl.Int32).alias("candidates"),
        groups.struct.field("seed").cast(pl.Int32).alias("seed"),
        pl.col("measured").alias("error"),
    )
    lines = [_slope_line(part, numbers) for _, part in points.group_by("layers", maintain_order=True)]
    if not lines:
        title = alt.TitleParams("A random Transformer, pruned", subtitle="no theory check in params.yaml")
        return alt.Chart(points).mark_point().properties(title=title), points
    data = pl.concat([points, *lines], how="diagonal")
    shown = points["target"].unique(maintain_order=True).to_list()
    colour = alt.Color(
        "target:N",
        title="layers of the target",
        scale=alt.Scale(domain=shown, range=[charts.BLUE, charts.VERMILLION][: len(shown)]),
        legend=alt.Legend(orient="bottom", symbolOpacity=1),
    )
    shape = alt.Shape(
        "target:N",
        title="layers of the target",
        scale=alt.Scale(domain=shown, range=["circle", "triangle-up"][: len(shown)]),
    )
    ticks = sorted(set(points["candidates"]))
    x = alt.X(
        "candidates:Q",
        title="candidates per weight and sign, n",
        scale=alt.Scale(domain=[ticks[0] - 1, ticks[-1] + 1], nice=False),
        axis=alt.Axis(values=ticks, grid=False),
    )
    y = alt.Y(
        "error:Q",
        title=ERROR_TITLE,
        scale=alt.Scale(type="log"),
        axis=alt.Axis(format="~e", values=[10.0**power for power in range(-9, 2)]),
    )
    base = alt.Chart(data)
    band = base.transform_filter("isValid(datum.low)").mark_area(opacity=0.15)
    line = base.transform_filter("isValid(datum.low)").mark_line(strokeWidth=1.5)
    dots = base.transform_filter("isValid(datum.error)").mark_point(filled=True, size=55, opacity=0.75)
    layers = alt.layer(
        band.encode(x=x, y=alt.Y("low:Q", title=ERROR_TITLE), y2="high:Q", color=colour),
        line.encode(x=x, y=alt.Y("fitted:Q", title=ERROR_TITLE), color=colour),
        dots.encode(x=x, y=y, color=colour, shape=shape),
    )
    told = [_slope_told(int(label.split()[-1]), numbers) for label in shown]
    seeds = points["seed"].n_unique()
    title = alt.TitleParams(
        "A random Transformer, pruned: each candidate per weight halves the error",
        subtitle=[
            f"{seeds} random parents of 4L layers for each n, their widths linear in n",
            f"Slope of log10 of the error, shaded: {CONFIDENCE:.0%} interval; halving is {number(-0.30103, 3)}",
            "; ".join(told),
        ],
    )
    words = (
        "Approximation error of pruned random Transformers on a log scale against the number of candidates per "
        f"weight, {', '.join(map(str, ticks))}. Slopes: {'; '.join(told)}."
    )
    return layers.properties(width=480, height=320, title=title, description=words), data


def _slope_line(points: pl.DataFrame, numbers: dict[str, float]) -> pl.DataFrame:
    """The least-squares line through the centre of ``points``, and the lines of the ends of its slope's interval."""
    layers = points["layers"][0]
    centre, height = points["candidates"].mean(), points["error"].log10().mean()
    ends = pl.DataFrame({"candidates": points["candidates"].unique().sort()})
    slopes = {
        name: numbers[f"pruning-slope{suffix}-l{layers}"]
        for name, suffix in (("fitted", ""), ("first", "-low"), ("second", "-high"))
    }
    at = {name: (slope * (pl.col("candidates") - centre) + height) for name, slope in slopes.items()}
    lines = ends.with_columns(**{name: 10**value for name, value in at.items()})
    return lines.select(
        "candidates",
        "fitted",
        pl.min_horizontal("first", "second").alias("low"),
        pl.max_horizontal("first", "second").alias("high"),
        pl.lit(points["target"][0]).alias("target"),
        pl.lit(layers).alias("layers"),
    )


def _slope_told(layers: int, numbers: dict[str, float]) -> str:
    value, low, high = (
        number(numbers[f"pruning-slope{suffix}-l{layers}"], 3) for suffix in ("", "-low", "-high")
    )
    return f"L = {layers}: {value} [{low}, {high}]"


def pruning_maps(context: Any) -> Figure:
    """DYCK-TH6 on a trained target: its attention beside that of a random parent, before and after pruning."""
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
        empty = pl.DataFrame(schema={"panel": pl.String, "weight": pl.Float64})
        return alt.Chart(empty).mark_rect().properties(title=title, description=words), empty
    figure = alt.vconcat(*rows, spacing=22).resolve_scale(color="shared")
    return figure.properties(title=title, description=words), pl.concat(frames)


def _demo_told(demo: pl.DataFrame, weights: pl.DataFrame, layer: int) -> list[str]:
    """What the panel of a network says below its name: in the first row its accuracy, then nothing."""
    row = _demo_row(demo, weights["network"][0], weights["candidates"][0])
    return [f"bracket accuracy {row['acc_close']:.3f}"] if layer == 1 else []


def _demo_row(demo: pl.DataFrame, network: str, candidates: int | None) -> dict[str, Any]:
    return demo.filter(pl.col("network") == network, pl.col("candidates").eq_missing(candidates)).row(
        0, named=True
    )


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
