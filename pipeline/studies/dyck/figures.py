"""Figures of the Dyck study (Wen et al. 2023): Figures 1 to 3, Table 1, variation, stack scores, theory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt
import polars as pl

from pipeline import charts
from schemas.dyck.tables import (
    ARMS,
    LINEAR,
    MINIMAL,
    MINIMAL_ANGLE,
    MINIMAL_SLOW,
    MINIMAL_SUM,
    PARENT,
    PROBE,
    PRUNED,
    PUBLISHED_TABLE_1_RANDOM,
    PUBLISHED_VARIATION,
    STACK_LIKE,
    STANDARD,
    TABLE_1,
    TARGET,
    WIDE,
)

Figure = tuple[alt.TopLevelMixin, pl.DataFrame]

PROBE_TEXT = "[[[[]]]](((())))"  # D4: footnote 10
# Panels of Figures 1 and 2: run, which of its stored replicas, what it is.
FIGURE_1 = [
    (WIDE, 0, "width 200 (M3)"),
    (STANDARD, 0, "width 50 (M1)"),
    (STANDARD, 1, "width 50 (M1), another initialisation"),
    (LINEAR, 0, "width 50, position code (M2)"),
]
FIGURE_2 = [
    (MINIMAL, 0, "embedding (15), learning rate 0.01 (M4)"),
    (MINIMAL_SLOW, 0, "embedding (15), learning rate 0.003 (M4)"),
    (MINIMAL_ANGLE, 0, "embedding (17) (M6)"),
    (MINIMAL_SUM, 0, "embedding (16) (M5)"),
]
UNIT = [0, 0.2, 0.4, 0.6, 0.8, 1]  # ticks of shares
CELL = 15  # pixels of one attention weight
# One hue, ever darker; steep at small weights, where most are. Even 0 is not white: white is masked.
WEIGHTS, BLUES = [0, 0.1, 0.3, 0.6, 1], ["#EEF4FA", "#C3DAEE", "#7FB2DA", "#2B74B3", "#06264D"]

MODEL_LABELS = {
    STANDARD: "standard (M1)",
    LINEAR: "linear position code (M2)",
    MINIMAL: "minimal first layer (M4)",
}
STACK_LABELS = {
    STANDARD: "standard (M1)",
    LINEAR: "position code (M2)",
    WIDE: "width 200 (M3)",
    MINIMAL: "embedding (15) (M4)",
    MINIMAL_SLOW: "(15), rate 0.003 (M4)",
    MINIMAL_SUM: "embedding (16) (M5)",
    MINIMAL_ANGLE: "embedding (17) (M6)",
}
RANDOM = "random causal maps"
OURS, CLOSED_FORM, PUBLISHED = "this reproduction", "closed form", "published"
ABOVE = -18  # pixels: published values stand above the bar they belong to
PUBLISHED_RANDOM = "published-16"  # theory check that holds the published variation of random maps

CLOSED_FORM_16 = "causal-closed-form-16"  # theory check that measures random maps of the probe's size
EXACT, TRAINED = "exact by construction", "trained"

LOG_TITLE = "attention variation (log scale)"
LAYERS = ["layer 1", "layer 2", "layer 3"]
ONE_MODEL, EVEN, LIKE = "one model", "uniform attention", f"stack-like from {STACK_LIKE}"

ARM_COLOURS = {"standard": charts.VERMILLION, "contrastive": charts.BLUE}
ACCURACIES = {"acc_close": "share of closers predicted", "acc_thr80": "share of positions sure of the closer"}


CONFIDENCE = 0.95  # of the slopes of `theory.pruning`
PRUNING_CHECK = r"^pruning-error-l(?<layers>\d+)-n(?<candidates>\d+)-seed(?<seed>\d+)$"  # theory, DYCK-TH6
ERROR_TITLE = "largest relative error of the pruned network (log scale)"
PRUNING_CELL = 11  # pixels: three maps side by side


def fig1(context: Any) -> Figure:
    """Figure 1: last-layer maps of four standard models on D4, boxes at the last unmatched open bracket."""
    title = "Attention of standard models, second layer"
    return _maps(context, FIGURE_1, title)


def fig2(context: Any) -> Figure:
    """Figure 2: maps of models with a minimal first layer on D4."""
    return _maps(context, FIGURE_2, "Attention of models with a minimal first layer")


def _maps(context: Any, panels: list[tuple[str, int, str]], title: str) -> Figure:
    """Two by two maps without the start token, as in the published variation."""
    attention, accuracy, stack = (context.table(name) for name in ("attention", "accuracy", "stack_score"))
    frames, charts_, words = [], [], []
    for letter, (run, which, label) in zip("abcd", panels, strict=True):
        weights = attention.filter(run=run, probe_split=PROBE, start_included=False, head=0)
        replicas = weights["replica"].unique().sort().to_list()
        if which >= len(replicas):
            continue
        weights = weights.filter(pl.col("layer") == pl.col("layer").max(), replica=replicas[which])
        frame = _map_data(weights, f"({letter}) {label}")
        frames.append(frame)
        scores = _map_scores(accuracy, stack, run, replicas[which])
        charts_.append(_map_panel(frame, scores))
        boxed = frame.filter("box").select(pl.col("weight").mean()).item()
        words.append(f"{frame['panel'][0]}: {', '.join(scores)}, mean weight in the boxes {boxed:.2f}")
    told = (
        f"{title}, on {PROBE_TEXT} without start token: weight of every query (row) on every key (column). "
        f"Boxes mark the last unmatched open bracket of each query. {'. '.join(words) or 'No model to show'}."
    )
    if not frames:
        empty = pl.DataFrame(schema={"panel": pl.String, "weight": pl.Float64})
        return alt.Chart(empty).mark_rect().properties(title=title, description=told), empty
    subtitle = [
        "Probe without start token; boxes: the last unmatched open bracket of each query.",
        "Stack score: share of queries of held-out strings with most weight on their box.",
    ]
    rows = [alt.hconcat(*charts_[i : i + 2], spacing=40) for i in range(0, len(charts_), 2)]
    figure = alt.vconcat(*rows, spacing=26).resolve_scale(color="shared")
    return figure.properties(title=alt.TitleParams(title, subtitle=subtitle), description=told), pl.concat(
        frames
    )


def _map_data(weights: pl.DataFrame, panel: str) -> pl.DataFrame:
    top = _last_unmatched(PROBE_TEXT)
    tokens = dict(enumerate(PROBE_TEXT))
    position = {name: pl.col(name).cast(pl.Int32) for name in ("query", "key")}
    return weights.sort("query", "key").select(
        pl.lit(panel).alias("panel"),
        "run",
        "replica",
        *position.values(),
        *(column.replace_strict(tokens).alias(f"{name}_token") for name, column in position.items()),
        "weight",
        (position["query"].replace_strict(dict(enumerate(top))) == position["key"]).alias("box"),
    )


def _last_unmatched(text: str) -> list[int]:
    """Position of the last unmatched open bracket after each character, -1 where there is none."""
    stack: list[int] = []
    found = []
    for i, char in enumerate(text):
        stack = [*stack, i] if char in "[(" else stack[:-1]
        found.append(stack[-1] if stack else -1)
    return found


def _map_scores(accuracy: pl.DataFrame, stack: pl.DataFrame, run: str, replica: int) -> list[str]:
    where = {"run": run, "replica": replica}
    found = []
    for row in accuracy.filter(**where).filter("in_distribution").iter_rows(named=True):
        found.append(f"accuracy {row['acc_close']:.3f}")
    last = stack.filter(**where).filter(pl.col("layer") == pl.col("layer").max(), head=0)
    for row in last.iter_rows(named=True):
        found.append(f"stack score {row['stack_argmax']:.2f}")
    return found


def _map_panel(frame: pl.DataFrame, scores: list[str], cell: int = CELL) -> Any:
    label = f"'{PROBE_TEXT}'[datum.value]"
    axis: dict[str, Any] = {
        "labelExpr": label,
        "labelAngle": 0,
        "ticks": False,
        "domain": False,
        "titlePadding": 4,
        "labelFontSize": min(charts.SIZE, cell - 2),
    }
    order = list(range(len(PROBE_TEXT)))
    x = alt.X("key:O", title="key", sort=order, axis=alt.Axis(**axis), scale=alt.Scale(domain=order))
    y = alt.Y("query:O", title="query", sort=order, axis=alt.Axis(**axis), scale=alt.Scale(domain=order))
    colour = alt.Color(
        "weight:Q",
        title="attention weight",
        scale=alt.Scale(domain=WEIGHTS, range=BLUES),
        legend=alt.Legend(orient="bottom", gradientLength=240, values=UNIT),
    )
    base = alt.Chart(frame).encode(
        x=x,
        y=y,
        tooltip=[
            alt.Tooltip("query:O"),
            alt.Tooltip("query_token:N", title="query token"),
            alt.Tooltip("key:O"),
            alt.Tooltip("key_token:N", title="key token"),
            alt.Tooltip("weight:Q", format=".3f"),
        ],
    )
    weights = base.mark_rect().encode(color=colour)
    boxes = base.transform_filter(alt.datum.box).mark_rect(
        filled=False, stroke=charts.VERMILLION, strokeWidth=1.6
    )
    title = alt.TitleParams(frame["panel"][0], subtitle=", ".join(scores), fontSize=charts.SIZE, offset=6)
    side = cell * len(PROBE_TEXT)
    return alt.layer(weights, boxes).properties(width=side, height=side, title=title)


def variation(context: Any) -> Figure:
    """DYCK-E3: variation of last-layer attention on D4, both start conventions, beside the published values.

    The paper does not say whether its maps include the start token: the published values stand in both panels.
    """
    table = context.table("variation").filter(
        pl.col("last_layer"),
        pl.col("run").is_in(list(MODEL_LABELS)),
        probe_split=PROBE,
        seq_id=0,
        head=0,
        causal=True,
    )
    theory = {row["check"]: row["bound"] for row in context.theory().iter_rows(named=True)}
    data = _variation_data(table, theory.get(PUBLISHED_RANDOM))
    order = [*MODEL_LABELS.values(), RANDOM]
    x = alt.X("value:Q", title="attention variation, mean ‖A − B‖² over pairs of models")
    y = alt.Y("model:N", sort=order, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=200))
    colour = alt.Color(
        "source:N",
        title=None,
        scale=alt.Scale(domain=[OURS, CLOSED_FORM], range=[charts.SKY, charts.GREY]),
        legend=alt.Legend(orient="bottom"),
    )
    diamond = alt.Shape(
        "source:N",
        title=None,
        scale=alt.Scale(domain=[PUBLISHED], range=["diamond"]),
        legend=alt.Legend(orient="bottom", symbolFillColor=charts.VERMILLION, symbolStrokeWidth=0),
    )
    base = alt.Chart(data).encode(y=y)
    bars = base.transform_filter(alt.datum.source != PUBLISHED)
    ours = base.transform_filter(alt.datum.source == OURS)
    published = base.transform_filter(alt.datum.source == PUBLISHED).encode(x=x)
    number = alt.Text("value:Q", format=".2f")
    layers = alt.layer(
        bars.mark_bar(height=20).encode(x=x, color=colour),
        ours.mark_rule(strokeWidth=1.5).encode(x="lo:Q", x2="hi:Q"),
        *(ours.mark_tick(size=9, thickness=1.5, color="black").encode(x=f"{end}:Q") for end in ("lo", "hi")),
        bars.mark_text(align="left", dx=6).encode(x="label_at:Q", text=number),
        published.mark_point(filled=True, opacity=1, size=80, yOffset=ABOVE, color=charts.VERMILLION).encode(
            shape=diamond
        ),
        published.mark_text(align="left", dx=8, yOffset=ABOVE, color=charts.VERMILLION).encode(text=number),
    )
    header = alt.Header(labelFontWeight="bold", labelAnchor="start")
    panels = layers.properties(width=400, height=alt.Step(50)).facet(
        alt.Facet("panel:N", title=None, sort="descending", header=header), columns=1
    )
    return panels.properties(title=_variation_title(table), description=_variation_words(data)), data


def _variation_data(table: pl.DataFrame, published_random: float | None) -> pl.DataFrame:
    """One row per panel, model and source (ours, closed form, published)."""
    rows: list[dict[str, Any]] = []
    for row in table.sort("run", "start_included").iter_rows(named=True):
        about = {"panel": _panel(row), "model": MODEL_LABELS[row["run"]]}
        numbers = {
            "value": row["variation_mean"],
            "lo": row["ci_lo"],
            "hi": row["ci_hi"],
            "n": row["n_models"],
        }
        rows.append(about | numbers | {"source": OURS})
        rows.append(about | {"value": PUBLISHED_VARIATION[row["run"]], "source": PUBLISHED})
    for panel, baseline in {
        _panel(row): row["random_baseline"] for row in table.iter_rows(named=True)
    }.items():
        rows.append({"panel": panel, "model": RANDOM, "value": baseline, "source": CLOSED_FORM})
        if published_random is not None:
            rows.append({"panel": panel, "model": RANDOM, "value": published_random, "source": PUBLISHED})
    schema = {"panel": pl.String, "model": pl.String, "source": pl.String} | dict.fromkeys(
        ("value", "lo", "hi"), pl.Float64
    )
    frame = pl.DataFrame(rows, schema=schema | {"n": pl.Int32})
    return frame.with_columns(label_at=pl.coalesce("hi", "value")).sort("panel", "model", "source")


def _variation_words(data: pl.DataFrame) -> str:
    """The figure in words, for those who cannot see it."""
    told = [
        f"{panel[0]}: "
        + ", ".join(f"{row['model']} {_number(row['value'])}" for row in rows.iter_rows(named=True))
        for panel, rows in data.filter(pl.col("source") != PUBLISHED).group_by("panel", maintain_order=True)
    ]
    return (
        "Attention variation, the mean squared distance between the last-layer maps of two models trained "
        f"from different initialisations. {'; '.join(told)}."
    )


def _panel(row: dict[str, Any]) -> str:
    n = row["n_rows"]
    return f"start token {'included' if row['start_included'] else 'omitted'} ({n} × {n})"


def _variation_title(table: pl.DataFrame) -> alt.TitleParams:
    subtitle = ["Last layer, probe [[[[]]]](((())))"]
    if table.height:
        subtitle[0] += f"; whiskers: {table['confidence'][0]:.0%} bootstrap interval over models"
    models = {row["run"]: row for row in table.iter_rows(named=True)}
    for run, label in MODEL_LABELS.items():
        if run in models:
            row = models[run]
            without = f", without {row['excluded_reason']}" if row["n_excluded"] else ""
            subtitle.append(f"{label}: {row['n_models']} models{without}")
    return alt.TitleParams("How much attention maps vary between initialisations", subtitle=subtitle)


def fig3(context: Any) -> Figure:
    """Figure 3: balance violation against accuracy at length, one point per model, both arms."""
    data = context.table("fig3").filter(~pl.col("diverged")).sort("arm", "replica")
    contrasts = context.table("contrasts").filter(contrast="rank")
    lengths = context.table("accuracy").filter(pl.col("run").is_in(list(ARMS.values())), eval_split="lengen")
    panels = [_fig3_panel(data, contrasts, name) for name in ACCURACIES]
    span = f" at lengths {lengths['shortest'].min()} to {lengths['longest'].max()}" if lengths.height else ""
    confidence = f", {contrasts['confidence'][0]:.0%} bootstrap interval" if contrasts.height else ""
    title = alt.TitleParams(
        f"Balance violation against accuracy{span}",
        subtitle=f"One point per model, lines by least squares; ρ: Spearman's rank correlation{confidence}",
    )
    words = (
        "Length generalisation against balance violation, one point per model, for standard and contrastive "
        f"training. {'. '.join(f'{name}: ' + '; '.join(_rank_lines(contrasts, name)) for name in ACCURACIES)}."
    )
    return alt.hconcat(*panels, spacing=30).properties(title=title, description=words), data


def _fig3_panel(data: pl.DataFrame, contrasts: pl.DataFrame, accuracy: str) -> Any:
    arms = list(ARMS)
    colour = alt.Color(
        "arm:N",
        title="training",
        scale=alt.Scale(domain=arms, range=[ARM_COLOURS[arm] for arm in arms]),
        legend=alt.Legend(orient="bottom"),
    )
    shape = alt.Shape(
        "arm:N", title="training", scale=alt.Scale(domain=arms, range=["circle", "triangle-up"])
    )
    x = alt.X(
        "beta:Q",
        title="balance violation β, mean |S| / P",
        scale=alt.Scale(zero=True),
        axis=alt.Axis(tickCount=4),
    )
    y = alt.Y(f"{accuracy}:Q", title=ACCURACIES[accuracy], scale=alt.Scale(zero=False, nice=True))
    base = alt.Chart(data)
    points = base.mark_point(filled=True, size=55, opacity=0.8).encode(x=x, y=y, color=colour, shape=shape)
    lines = (
        base.transform_regression("beta", accuracy, groupby=["arm"])
        .mark_line(strokeWidth=2)
        .encode(x=x, y=y, color=colour)
    )
    title = alt.TitleParams(
        accuracy, subtitle=_rank_lines(contrasts, accuracy), fontSize=charts.SIZE, offset=8
    )
    return alt.layer(points, lines).properties(width=235, height=235, title=title)


def _rank_lines(contrasts: pl.DataFrame, accuracy: str) -> list[str]:
    """Spearman's correlation and its interval, per arm and pooled."""
    rows = contrasts.filter(metric=f"beta, {accuracy}")
    lines = []
    for label, where in (
        *((arm, {"statistic": "spearman", "first": run}) for arm, run in ARMS.items()),
        ("both", {"statistic": "spearman of both arms pooled"}),
    ):
        for row in rows.filter(**where).iter_rows(named=True):
            lines.append(f"{label}: ρ = {_number(row['value'])} [{_number(row['lo'])}, {_number(row['hi'])}]")
    return lines or ["no correlation measured"]


def _number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def table1(context: Any) -> Figure:
    """Table 1: variation by layer on the sentences of D5, published and ours."""
    table = context.table("variation_table1").sort("lang_k", "lang_D", "n_layers", "layer")
    data = _table1_data(table)
    cells = data["cell"].unique(maintain_order=True).to_list()
    y = alt.Y(
        "cell:N",
        sort=cells,
        title=None,
        axis=alt.Axis(ticks=False, domain=False, grid=False, labelLimit=200, labelPadding=8),
        scale=alt.Scale(paddingInner=0.25),
    )
    offset = alt.YOffset("source:N", sort=[PUBLISHED, OURS], scale=alt.Scale(paddingInner=0))
    colour = alt.Color(
        "source:N",
        title=None,
        scale=alt.Scale(domain=[PUBLISHED, OURS], range=[charts.VERMILLION, charts.BLUE]),
        legend=alt.Legend(orient="bottom", symbolType="square"),
    )
    shape = alt.Shape(
        "layer:N",
        title=None,
        scale=alt.Scale(domain=LAYERS, range=["circle", "square", "triangle-up"]),
        legend=alt.Legend(orient="bottom", symbolFillColor=charts.INK, symbolStrokeWidth=0),
    )
    x = alt.X(
        "value:Q",
        title=LOG_TITLE,
        scale=alt.Scale(type="log", domain=[0.003, 40], nice=False),
        axis=alt.Axis(values=[0.01, 0.1, 1, 10], format="~g"),
    )
    base = alt.Chart(data).encode(y=y, yOffset=offset, color=colour)
    numbers = base.mark_text(align="center", fontSize=12).encode(
        x=alt.X(
            "layer:N",
            title=None,
            sort=LAYERS,
            axis=alt.Axis(orient="top", labelAngle=0, ticks=False, domain=False),
        ),
        text="text:N",
    )
    bars = base.mark_rule(strokeWidth=3).encode(x=alt.X("low:Q", title=LOG_TITLE), x2="high:Q")
    over_models = base.mark_rule(strokeWidth=1, opacity=0.7, clip=True).encode(
        x=alt.X("ci_lo:Q", title=LOG_TITLE), x2="ci_hi:Q"
    )
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=x,
        shape=shape,
        y=alt.Y("cell:N", sort=cells, title=None, axis=None, scale=alt.Scale(paddingInner=0.25)),
    )
    random = alt.Chart(data).mark_rule(color=charts.GREY, strokeDash=[5, 3], strokeWidth=1.5)
    random = random.encode(x=alt.X("mean(random):Q", title=LOG_TITLE))
    height = 46 * max(len(cells), 1)
    left = numbers.properties(width=285, height=height)
    right = alt.layer(random, over_models, bars, points).properties(width=230, height=height)
    title = _table1_title(table)
    figure = alt.hconcat(left, right, spacing=12).resolve_scale(y="shared")
    return figure.properties(title=title, description=_table1_words(data)), data


def _table1_data(table: pl.DataFrame) -> pl.DataFrame:
    """One row per cell, layer and source (published, ours)."""
    rows: list[dict[str, Any]] = []
    for row in table.iter_rows(named=True):
        about = {
            "cell": f"k={row['lang_k']}, D={row['lang_D']}, {row['n_layers']} layers",
            "layer": f"layer {row['layer']}",
            "random": row["random_baseline"],
        }
        for source, mean, sd in (
            (PUBLISHED, row["published_mean"], row["published_sd"]),
            (OURS, row["mean"], row["sd_over_sentences"]),
        ):
            interval = {"ci_lo": row["ci_lo"], "ci_hi": row["ci_hi"]} if source == OURS else {}
            if mean is None:
                continue
            text = f"{mean:.3f}" if mean < 1 else f"{mean:.2f}"
            spread = "" if sd is None else f" ({sd:.3f})" if mean < 1 else f" ({sd:.2f})"
            ends = {"low": max(mean - (sd or 0), 1e-4), "high": mean + (sd or 0)}
            rows.append(
                about | {"source": source, "value": mean, "sd": sd, "text": text + spread} | ends | interval
            )
    numbers = dict.fromkeys(("value", "sd", "low", "high", "ci_lo", "ci_hi", "random"), pl.Float64)
    schema: dict[str, Any] = dict.fromkeys(("cell", "layer", "source", "text"), pl.String)
    return pl.DataFrame(rows, schema=schema | numbers)


def _table1_title(table: pl.DataFrame) -> alt.TitleParams:
    subtitle = ["Mean (standard deviation; thick bars) over 40 sentences of length 19, with start token"]
    if table.height:
        first = table.row(0, named=True)
        sizes = sorted(set(table["n_models"]))
        counted = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        excluded = int(table.filter(layer=1)["n_excluded"].sum())
        without = f" ({excluded} of all rows excluded)" if excluded else ""
        subtitle[0] = subtitle[0].replace("40", str(first["n_sentences"]))
        subtitle.append(f"Thin bars: {first['confidence']:.0%} bootstrap interval of ours over models")
        subtitle.append(
            f"{counted} models per row{without}; dashed: random causal maps, {first['random_baseline']:.2f} "
            f"(published {PUBLISHED_TABLE_1_RANDOM})"
        )
    return alt.TitleParams("Variation of attention by layer (Table 1)", subtitle=subtitle)


def _table1_words(data: pl.DataFrame) -> str:
    told = [
        f"{cell}: "
        + ", ".join(f"{row['layer']} {row['text']}" for row in rows.filter(source=OURS).iter_rows(named=True))
        for (cell,), rows in data.group_by("cell", maintain_order=True)
    ]
    return f"Attention variation by layer, this reproduction beside the published table. {'; '.join(told)}."


def stack_score(context: Any) -> Figure:
    """DYCK-A4, evidence for claim 4: how often, and how much, attention looks at the last unmatched open bracket."""
    models = STACK_LABELS | {run: "k={}, D={}, {} layers (M8)".format(*cell) for cell, run in TABLE_1.items()}
    table = context.table("stack_score").filter(pl.col("run").is_in(list(models)), head=0)
    table = table.filter(pl.col("layer") == pl.col("layer").max().over("run"))
    data = table.select(
        pl.col("run").replace_strict(models, return_dtype=pl.String).alias("model"),
        "replica",
        "layer",
        "stack_argmax",
        "stack_mass",
        "stack_mass_uniform",
    ).sort("model", "replica")
    shown = [label for label in models.values() if label in set(data["model"])]
    colour = alt.Color(
        "what:N",
        title=None,
        scale=alt.Scale(domain=[ONE_MODEL, EVEN, LIKE], range=[charts.BLUE, charts.VERMILLION, charts.GREY]),
        legend=alt.Legend(orient="bottom"),
    )
    panels = []
    for column, told in (
        ("stack_argmax", "share of queries with most weight there"),
        ("stack_mass", "mean weight there"),
    ):
        ticks = alt.Axis(values=UNIT)
        x = alt.X(f"{column}:Q", title=told, scale=alt.Scale(domain=[0, 1]), axis=ticks)
        names = alt.Axis(
            ticks=False, domain=False, grid=True, labelLimit=220, labels=column == "stack_argmax"
        )
        base = alt.Chart(data).encode(y=alt.Y("model:N", sort=shown, title=None, axis=names))
        layers = [
            base.transform_calculate(what=f"'{ONE_MODEL}'")
            .mark_point(filled=True, size=45, opacity=0.6)
            .encode(x=x, color=colour)
        ]
        if column == "stack_argmax":
            like = alt.Chart(pl.DataFrame({"at": [STACK_LIKE], "what": [LIKE]}))
            layers.append(
                like.mark_rule(strokeDash=[5, 3], strokeWidth=1.5).encode(
                    x=alt.X("at:Q", title=told), color=colour
                )
            )
        else:
            even = base.transform_calculate(what=f"'{EVEN}'").mark_tick(thickness=2.5, size=14)
            layers.append(even.encode(x=alt.X("mean(stack_mass_uniform):Q", title=told), color=colour))
        panels.append(alt.layer(*layers).properties(width=210, height=alt.Step(22)))
    title = alt.TitleParams(
        "How much attention looks like the top of a stack",
        subtitle="Weight of the last layer on the last unmatched open bracket, held-out strings",
    )
    means = data.group_by("model", maintain_order=True).agg(pl.col("stack_argmax").mean())
    found = dict(means.iter_rows())
    words = (
        "Stack score of the last layer, one point per model: share of queries whose largest weight lies on the "
        f"last unmatched open bracket, and mean weight on it. Mean shares: "
        f"{', '.join(f'{label} {found[label]:.2f}' for label in shown) or 'none'}."
    )
    return alt.hconcat(*panels, spacing=16).properties(title=title, description=words), data


def exact_solvers(context: Any) -> Figure:
    """DYCK-F11 (ours): attention of solvers that are exact by construction, beside trained models and random maps."""
    rows: list[dict[str, Any]] = []
    for row in _theory_points(context, r"exact-variation-sigma(?<x>[0-9.]+)").iter_rows(named=True):
        rows.append({"what": f"exact, σ = {row['x']:g}", "value": row["measured"], "kind": EXACT})
    table = context.table("variation").filter(
        pl.col("last_layer"), probe_split=PROBE, seq_id=0, head=0, causal=True, start_included=False
    )
    for run, label in MODEL_LABELS.items():
        for value in table.filter(run=run)["variation_mean"].drop_nulls():
            rows.append({"what": label, "value": value, "kind": TRAINED})
    for value in context.theory().filter(check=CLOSED_FORM_16)["measured"]:
        rows.append({"what": RANDOM, "value": value, "kind": RANDOM})
    data = pl.DataFrame(rows, schema={"what": pl.String, "value": pl.Float64, "kind": pl.String})
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
    numbers = base.mark_text(align="left", dx=5).encode(text=alt.Text("value:Q", format=".2f"))
    title = alt.TitleParams(
        "Attention maps of models that are never wrong",
        subtitle=[
            "Exact solvers of Theorem 1: logits of spread σ, balanced and else random; every prediction is exact",
            f"Probe {PROBE_TEXT}; trained models without start token, solvers without its row and column",
        ],
    )
    told = ", ".join(f"{row['what']} {_number(row['value'])}" for row in data.iter_rows(named=True))
    words = (
        f"Attention variation of exact solvers, trained models and random maps: {told or 'none measured'}."
    )
    chart = alt.layer(bars, numbers).properties(width=400, height=alt.Step(28))
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
    ends = [f"δ={row['δ']} {row['y']:.2g}" for row in data.sort("x").unique(
        ["panel", "δ"], keep="last", maintain_order=True).sort("panel", "δ").iter_rows(named=True)]  # fmt: skip
    words = (
        "Without noise, inserted pairs and longer strings change nothing; with it, the distance of two prefixes "
        f"falls like one over the number of pairs, and accuracy falls with length. Last points: {', '.join(ends)}."
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
            f"Slope of log10 of the error, shaded: {CONFIDENCE:.0%} interval; halving is {_number(-0.30103, 3)}",
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
        _number(numbers[f"pruning-slope{suffix}-l{layers}"], 3) for suffix in ("", "-low", "-high")
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
            frame = _map_data(weights.with_columns(run=pl.lit(network), replica=pl.lit(0)), own)
            frames.append(frame.with_columns(target_layer=pl.lit(layer)))
            panels.append(_map_panel(frame, _demo_told(demo, weights, layer), PRUNING_CELL))
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


FIGURES: dict[str, Callable[[Any], Figure]] = {
    "fig1": fig1,
    "stack_score": stack_score,
    "fig2": fig2,
    "variation": variation,
    "fig3": fig3,
    "table1": table1,
    "exact_solvers": exact_solvers,
    "broken_solvers": broken_solvers,
    "pruning_error": pruning_error,
    "pruning_maps": pruning_maps,
}
