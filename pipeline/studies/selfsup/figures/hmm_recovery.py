"""E8 as figures: errors against the number of samples, and tables that learn a predictor (F-H2)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, comparisons, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.selfsup.comparisons import CASES, FALLS, LEARNED, METHODS
from pipeline.studies.selfsup.figures.common import guide, spanning
from schemas.selfsup.hmm import ALS, JENNRICH, SAMPLE

BY_METHOD = plots.kinds({METHODS[JENNRICH]: charts.ORANGE, METHODS[ALS]: charts.BLUE}, "method", dashes=False)
NAMES = {"start": "before training", "to_shares": "after training", "shares_to_law": "shares from the law"}
BY_TABLE = plots.kinds(
    dict(zip(NAMES.values(), (charts.GREY, charts.BLUE, charts.ORANGE), strict=True)), "what", legend=None
)


@plots.drawn("The error of O against triples")
def recovery(context: Results) -> Figure:
    """Error of O against the number of triples, case by case: medians, quartiles, and each model."""
    table = plots.some(context.table("hmm_recovery").filter(source=SAMPLE)).with_columns(
        pl.col("method").replace_strict(METHODS), shown=pl.col("case").replace_strict(CASES)
    )
    data = table.group_by("shown", "method", "N", maintain_order=True).agg(
        pl.col("err_O").median().alias("median"),
        pl.col("err_O").quantile(0.25).alias("low"),
        pl.col("err_O").quantile(0.75).alias("high"),
        pl.len().alias("models"),
    )
    sizes = [float(n) for n in table["N"].unique().sort()]
    x = Axis("N", "triples N (log)", log=True, domain=[sizes[0] / 1.6, sizes[-1] * 1.6], values=sizes, form="~e")
    y = spanning("median", "Frobenius error of O", [*data["low"], *data["high"]], room=1.7)
    slopes = comparisons.read(context, FALLS.values()).with_columns(
        case=pl.Series([case for case, _ in FALLS]), method=pl.Series([METHODS[method] for _, method in FALLS])
    )
    panels: list[plots.Panel] = []
    for case, shown in CASES.items():
        named = y if not panels else y.but(title=None)
        curves = plots.lines(data.filter(shown=shown), x, named, BY_METHOD, band=("low", "high"), dots=True)
        law = guide(x, named, sizes, -0.5, (sizes[0], 0.4 * plots.most(data["high"])))
        said = plots.tell(slopes.filter(case=case), "{method} {value:.2f}", ", ")
        panels.append(plots.panel([*law, *curves], shown.capitalize(), 165, 230, f"slopes: {said}"))
    polished = slopes.filter(method=METHODS[ALS])
    root = bool(((polished["lo"] >= -0.6) & (polished["hi"] <= -0.4)).fill_null(False).all())
    return plots.figure(
        plots.grid(panels, 3, spacing=14),
        data,
        "The error of O falls as one over the square root of the triples" if root else "The error of O against triples",
        f"Lines: medians of {plots.count(data['models'], 'model')} (d = 6, k = 3), one sample each; bands: quartiles; "
        "dashed: slope −1/2. Above each panel: mean of the models’ slopes",
        told=f"By case and method: {plots.tell(slopes, '{measure} {value:.2f} ({first})')}.",
    )


@plots.drawn("Tables trained by SGD and the shares of their samples")
def tables(context: Results) -> Figure:
    """Trained tables: how far they are from the shares of their sample, beside how far these are from the law."""
    table = plots.some(context.table("hmm_learned")).with_columns(shown=pl.col("case").replace_strict(CASES))
    data = table.unpivot(list(NAMES), index=["instance_id", "shown"], variable_name="what", value_name="distance")
    data = data.with_columns(pl.col("what").replace_strict(NAMES))
    low = 0.5 * plots.least(data["distance"])
    x = spanning("distance", "Frobenius distance", [low, 2.0], room=1.0)
    y = Axis("what", None, "N", order=list(NAMES.values()))
    panels = [
        plots.panel(
            plots.points(data.filter(shown=shown), x, y, BY_TABLE, tips=["instance_id"], size=35, opacity=0.65),
            shown.capitalize(),
            390,
            66,
        )
        for shown in CASES.values()
    ]
    ratios = comparisons.read(context, LEARNED.values())["value"].drop_nulls().to_list()
    return plots.figure(
        plots.grid(panels, 1),
        data,
        "A table trained by SGD learns the shares of its sample"
        if ratios and max(ratios) < 0.5
        else "Tables trained by SGD and the shares of their samples",
        f"A point is one of {plots.count([table['instance_id'].n_unique()], 'model')} in each case, "
        f"{plots.about(plots.most(table['samples']))} triples each",
        told="Distances of trained tables from shares of samples; quotients: "
        f"{', '.join(map('{:.2g}'.format, ratios))}.",
    )
