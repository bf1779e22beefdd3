"""What figures of this study share."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts

Figure = tuple[alt.TopLevelMixin, pl.DataFrame]

TASKS = {
    "sc": "memorization",
    "ic_qa": "reasoning",
    "tm": "generalization",
    "ic_tm": "contextual generalization",
    "nested": "nested lookups",
}
# Of a number of layers: colour, and a dash for those who see no colours.
DEPTHS: dict[int, tuple[str, list[int]]] = {
    1: (charts.ORANGE, [1, 0]),
    2: (charts.BLUE, [6, 4]),
    3: (charts.VERMILLION, [12, 2]),
    4: (charts.PURPLE, [7, 2, 2, 2]),
    5: (charts.GREEN, [3, 3]),
    6: (charts.BLACK, [1, 2]),
    7: (charts.SKY, [1, 0]),
    8: (charts.GREY, [6, 4]),
}
UNIT = [0, 0.2, 0.4, 0.6, 0.8, 1]  # ticks of shares


def layers(number: int) -> str:
    """``1 layer``, ``2 layers``."""
    return f"{number} layer{'' if number == 1 else 's'}"


def shape_name(about: dict[str, Any]) -> str:
    """``reasoning [1, 1]``, and where it does not start from its construction with SGD, what else."""
    start = ", random start" if about["init"] == "random" else ""
    optimizer = "" if about["optimizer"] == "sgd" else ", Adam"
    return f"{TASKS[about['task']]} [{about['heads']}]{start}{optimizer}"


def scales(labels: dict[str, int]) -> tuple[alt.Scale, alt.Scale]:
    """Colours and dashes of labels, each with the number whose look in `DEPTHS` it takes."""
    looks = [DEPTHS[number] for number in labels.values()]
    names = list(labels)
    return alt.Scale(domain=names, range=[colour for colour, _ in looks]), alt.Scale(
        domain=names, range=[dash for _, dash in looks]
    )


def number(value: float | None, digits: int = 2) -> str:
    """``value`` as figures print it; an en dash where it is not defined."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def empty(title: str, why: str) -> Figure:
    """A figure that says why there is nothing to show."""
    data = pl.DataFrame({"why": [why]})
    chart: Any = (
        alt.Chart(data).mark_text(align="left", color=charts.INK).encode(text="why:N", x=alt.value(0))
    )
    return chart.properties(width=600, height=40, title=title, description=f"{title}: {why}."), data


def facet(chart: Any, column: str, columns: int = 1) -> Any:
    """``chart`` once for each value of ``column``, in the order of the tasks, each with its own vertical axis."""
    header = alt.Header(labelFontWeight="bold", labelAnchor="start", labelFontSize=14)
    field = alt.Facet(f"{column}:N", title=None, sort=list(TASKS.values()), header=header)
    return chart.facet(field, columns=columns).resolve_scale(y="independent", yOffset="independent")
