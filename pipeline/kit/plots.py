"""The parts that figures are made of: axes, kinds of marks, lines, points, heat maps, rules, panels, and their words.

A figure's function filters tables, and says what is drawn against what; how it looks is decided here. Every mark that
needs a word gets it where it is drawn: a rule carries its name, and `figure` takes notes for bands, bars and dashes,
which a test asks for. A figure that finds nothing to draw raises `NothingError`, by way of `some`; `drawn` turns
that into the figure that says so.
"""

from __future__ import annotations

import functools
import math
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, ParamSpec

import altair as alt
import polars as pl

from pipeline.errors import SandglassError
from pipeline.kit import charts, drawings
from pipeline.kit.charts import Figure
from pipeline.kit.intervals import NONE

UNTRAINED = "nothing was trained at this scale"
WIDE = 620  # pixels into which titles and their notes are broken
SMALL = 12  # pixels of words inside a panel
SOLID, DASHED, DOTTED = [1, 0], [6, 3], [2, 2]
DASHES = [SOLID, DASHED, DOTTED, [8, 2, 2, 2], [4, 1], [1, 1], [12, 2], [3, 3]]
SHAPES = ["circle", "triangle-up", "square", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left"]
BLUES = ["#EEF4FA", "#C3DAEE", "#7FB2DA", "#2B74B3", "#06264D"]  # one hue, ever darker
DIVERGING = [charts.BLUE, "#FFFFFF", charts.VERMILLION]  # white is 0

STROKE = {"symbolType": "stroke", "symbolSize": 400, "symbolStrokeWidth": 2.5}  # of lines, in a legend

P = ParamSpec("P")
Layers = list[Any]  # charts on common axes
Panel = Any  # a chart with a size; altair's kinds of charts have no common type that can be joined


# Nothing to draw


class NothingError(SandglassError):
    """There is nothing to draw at this scale; says why."""


def some(frame: pl.DataFrame, why: str = UNTRAINED) -> pl.DataFrame:
    """Return ``frame``.

    Raises NothingError if it has no rows.
    """
    if not frame.height:
        raise NothingError(why)
    return frame


def drawn(topic: str) -> Callable[[Callable[P, Figure]], Callable[P, Figure]]:
    """Have a figure's function return a figure that says why there is nothing to draw, where it finds nothing.

    ``topic`` is the title then: a finding cannot be told.
    """

    def decorated(draw: Callable[P, Figure]) -> Callable[P, Figure]:
        @functools.wraps(draw)
        def figure_or_why(*args: P.args, **kwargs: P.kwargs) -> Figure:
            try:
                return draw(*args, **kwargs)
            except NothingError as nothing:
                return charts.empty(topic, str(nothing))

        return figure_or_why

    return decorated


# Axes


@dataclass(frozen=True)
class Axis:
    """What an axis shows: a column, its title with the unit, and its scale. ``kind`` is that of Vega-Lite.

    ``values`` are its ticks, printed as they are; ``form`` formats ticks that Vega chooses; ``order`` is that of the
    categories; ``more`` are further settings of the axis.
    """

    field: str
    title: str | None
    kind: str = "Q"
    log: bool = False
    domain: Sequence[float] | None = None
    values: Sequence[Any] | None = None
    form: str = "~g"
    zero: bool | None = None
    pad: float | None = None
    order: Sequence[Any] | str | None = None
    count: int = 5
    more: Mapping[str, Any] | None = None

    def at(self, channel: type[Any], field: str | None = None) -> Any:
        """Return the channel, ``alt.X`` or ``alt.Y``, of this column or of another one on the same scale."""
        quantitative = self.kind == "Q"
        axis: dict[str, Any] = {"labelAngle": 0} if channel is alt.X and not quantitative else {}
        if not quantitative:
            axis |= {"ticks": False, "domain": False, "labelLimit": 320}
        if quantitative and self.values is None:
            axis["tickCount"] = self.count
        elif self.values is not None:
            axis["values"] = list(self.values)
        if quantitative:  # a format would round to what the distance between two ticks shows, and print 0k
            axis["labelExpr"] = f"format(datum.value, '{self.form}')"
        scale: dict[str, Any] = {"type": "log", "nice": False} if self.log else {}
        if self.domain is not None:
            scale |= {"domain": list(self.domain), "clamp": True, "nice": False}
        elif self.zero is not None:
            scale["zero"] = self.zero
        if self.pad is not None:
            scale |= {"padding": self.pad, "nice": False}
        ordered = (
            {} if self.order is None else {"sort": self.order if isinstance(self.order, str) else list(self.order)}
        )
        made: Any = channel(
            f"{field or self.field}:{self.kind}",
            title=self.title,
            axis=alt.Axis(**axis | dict(self.more or {})),
            **({"scale": alt.Scale(**scale)} if scale else {}),
            **ordered,
        )
        return made

    def but(self, **changes: Any) -> Axis:
        """Return this axis with some settings changed."""
        return replace(self, **changes)


def share(field: str, title: str = "accuracy", low: float = 0) -> Axis:
    """Return an axis of shares from ``low`` to 1, both ends with a tick; a task of two classes begins at guessing."""
    if low >= 0.5:
        return Axis(field, title, domain=[low - 0.05, 1], values=[low, 0.75, 1])
    return Axis(field, title, domain=[low, 1], values=[tick for tick in (0, 0.25, 0.5, 0.75, 1) if tick >= low])


def steps(field: str = "step", title: str | None = "steps of training", **more: Any) -> Axis:
    """Return an axis of steps, in thousands where there are so many."""
    return Axis(field, title, form="~s", **{"count": 4} | more)


def listed(field: str, title: str | None, data: pl.DataFrame, **more: Any) -> Axis:
    """Return an axis with a tick at each value of ``data``, and room at its ends."""
    return Axis(field, title, values=data[field].drop_nulls().unique().sort().to_list(), **{"pad": 16} | more)


def log(field: str, title: str, values: pl.Series | Sequence[float], least: float | None = None) -> Axis:
    """Return a logarithmic axis that spans the positive ``values``, down to ``least`` at most, a tick each decade."""
    known = [float(value) for value in values if value is not None and value > 0]
    low, high = (min(known), max(known)) if known else (0.1, 1.0)
    low = max(low, least or low)
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    every = max(1, (last - first) // 6)
    domain = [10.0**first, 10.0 ** max(last, first + 1)]
    return Axis(field, title, log=True, domain=domain, values=[10.0**n for n in range(first, last + 1, every)])


def between(values: pl.Series | Sequence[float]) -> list[float]:
    """Return ticks of a logarithmic axis at 1, 2 and 5 of each decade that ``values`` reach across."""
    low, high = float(min(values)), float(max(values))
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    spots = [lead * 10.0**n for n in range(first, last + 1) for lead in (1, 2, 5)]
    return [spot for spot in spots if low / 1.001 <= spot <= high * 1.001]


# Kinds of marks


class Look(NamedTuple):
    """How a kind of mark looks."""

    colour: str
    dash: Sequence[int] = SOLID
    shape: str = "circle"
    fill: str | None = None  # of points: the colour, if not white for those that are hollow


@dataclass(frozen=True)
class Kinds:
    """The kinds of marks of a figure, by the column that names them, with one legend for all their channels."""

    field: str
    looks: Mapping[str, Look]
    title: str | None = None
    columns: int = 3
    legend: str | None = "top"
    points_alone: bool = False  # in the legend
    lines_alone: bool = False

    def among(self, labels: pl.Series | Iterable[str]) -> Kinds:
        """Return these kinds, but those alone that ``labels`` has."""
        there = set(labels)
        return replace(self, looks={name: look for name, look in self.looks.items() if name in there})

    def joined(self) -> Kinds:
        """Return these kinds with the legend of points for lines too, which join them."""
        return replace(self, points_alone=True)

    def along(self) -> Kinds:
        """Return these kinds with the legend of lines for points too, which stand on or beside them."""
        return replace(self, lines_alone=True)

    def lines(self) -> dict[str, Any]:
        """Return the channels of lines: colour, and dashes where kinds differ in them."""
        legend = self._legend(**{"symbolSize": 70} if self.points_alone else STROKE)
        found = {"color": self._channel(alt.Color, 0, legend)}
        return found | ({"strokeDash": self._channel(alt.StrokeDash, 1, legend)} if self._differ(1) else {})

    def points(self, hollow: str | None = None) -> dict[str, Any]:
        """Return the channels of points: colour, shape where kinds differ in it, and no filling but where the column
        ``hollow`` is true."""
        legend = self._legend(**STROKE if self.lines_alone else {"symbolSize": 70})
        if len(self.looks) > 1 and not self._differ(
            0
        ):  # beside marks that differ in colours, which would share this scale
            ink = next(iter(self.looks.values())).colour
            outlined = {"color": alt.value(ink), "shape": self._channel(alt.Shape, 2, self._legend())}
            return outlined | ({"fill": _filled(ink, hollow)} if hollow else {})
        found = {"color": self._channel(alt.Color, 0, legend), "fill": self._channel(alt.Fill, 3, legend)}
        if hollow:
            found["fill"].condition = {"test": f"datum['{hollow}'] === false", "value": "white"}
        return found | ({"shape": self._channel(alt.Shape, 2, legend)} if self._differ(2) else {})

    def colour(self) -> alt.Color:
        """Return the colours alone, for marks that are neither lines nor points."""
        found: alt.Color = self._channel(alt.Color, 0, self._legend(symbolSize=90))
        return found

    def _differ(self, part: int) -> bool:
        return len({str(look[part]) for look in self.looks.values()}) > 1

    def _legend(self, **symbols: Any) -> alt.Legend | None:
        if self.legend is None:
            return None
        more: dict[str, Any] = {"orient": self.legend, "columns": self.columns, "symbolOpacity": 1} | symbols
        return alt.Legend(**more)

    def _channel(self, channel: type[Any], part: int, legend: alt.Legend | None) -> Any:
        scale = alt.Scale(domain=list(self.looks), range=[look[part] or look.colour for look in self.looks.values()])
        return channel(f"{self.field}:N", title=self.title, scale=scale, legend=legend)


def kinds(
    names: Iterable[str] | Mapping[str, str],
    field: str = "label",
    *,
    dashes: bool = True,
    shapes: bool = False,
    **more: Any,
) -> Kinds:
    """Return kinds of marks by ``names``, in their order, with the colours that come with them or those of the house.

    Lines that may lie on each other are told apart by ``dashes`` as well, points by ``shapes``.
    """
    listed_ = list(names)
    colours = list(names.values()) if isinstance(names, Mapping) else charts.PALETTE
    looks = {
        name: Look(
            colours[i % len(colours)],
            DASHES[i % len(DASHES)] if dashes else SOLID,
            SHAPES[i % len(SHAPES)] if shapes else "circle",
        )
        for i, name in enumerate(listed_)
    }
    return Kinds(field, looks, **more)


# Marks


def lines(
    data: pl.DataFrame,
    x: Axis,
    y: Axis,
    by: Kinds | str = charts.BLUE,
    *,
    band: tuple[str, str] | None = None,
    bars: tuple[str, str] | None = None,
    dots: bool = False,
    each: str | None = None,
    tips: Sequence[str] = (),
    **mark: Any,
) -> Layers:
    """Return lines of ``y`` over ``x``, one for each kind or, with the column ``each``, for each of its values.

    ``band`` or ``bars`` are the columns of the ends of an interval, which rows without one do not have; ``dots`` draws
    a dot at every value; ``tips`` are further columns of the tooltip; ``mark`` are settings of the line.
    """
    look: dict[str, Any] = by.lines() if isinstance(by, Kinds) else {}
    colour = look["color"] if look else alt.value(by)
    base = alt.Chart(data).encode(x=x.at(alt.X))
    found: Layers = []
    if ends := band or bars:
        spread = data.drop_nulls(ends)
        if spread.height:
            made = alt.Chart(spread).encode(
                x=x.at(alt.X), y=y.at(alt.Y, ends[0]), y2=f"{ends[1]}:Q", color=colour, **_apart(each)
            )
            found = [made.mark_area(opacity=0.2, clip=True) if band else made.mark_rule(strokeWidth=1.5)]
    settings: dict[str, Any] = {"strokeWidth": 2, "clip": True}
    if dots:
        settings["point"] = alt.OverlayMarkDef(size=30, filled=True)
    line = base.mark_line(**settings | mark).encode(
        y=y.at(alt.Y), **look or {"color": alt.value(by)}, **_apart(each), tooltip=_tips(data, x, y, by, tips)
    )
    return [*found, line]


def points(
    data: pl.DataFrame,
    x: Axis,
    y: Axis,
    by: Kinds | str = charts.BLUE,
    *,
    ends: tuple[str, str] | None = None,
    hollow: str | None = None,
    apart: str | None = None,
    tips: Sequence[str] = (),
    **mark: Any,
) -> Layers:
    """Return points with their intervals, whose ends are the columns ``ends`` of the axis that is a quantity (of ``y``,
    if both are).

    Points are hollow where the column ``hollow`` is false: models that did not learn. ``apart`` is the column by which
    those of one category stand beside each other, in the order of the kinds.
    """
    upright = y.kind == "Q"
    offset = {} if apart is None else {"xOffset" if upright else "yOffset": _beside(apart, by, upright)}
    look = by.points(hollow) if isinstance(by, Kinds) else {"color": alt.value(by), "fill": _filled(by, hollow)}
    found: Layers = []
    if ends and (spread := data.drop_nulls(ends)).height:
        span = (
            {"x": x.at(alt.X), "y": y.at(alt.Y, ends[0]), "y2": f"{ends[1]}:Q"}
            if upright
            else {"y": y.at(alt.Y), "x": x.at(alt.X, ends[0]), "x2": f"{ends[1]}:Q"}
        )
        bars = alt.Chart(spread).mark_rule(strokeWidth=1.5).encode(**span, **offset, color=look["color"])
        found = [bars]
    settings: dict[str, Any] = {"size": 55, "strokeWidth": 1.6, "opacity": 1}
    marks = alt.Chart(data).mark_point(**settings | mark)
    return [*found, marks.encode(x=x.at(alt.X), y=y.at(alt.Y), **offset, **look, tooltip=_tips(data, x, y, by, tips))]


def seeds(
    data: pl.DataFrame, x: Axis, y: Axis, by: Kinds | str = charts.BLUE, *, middle: str = "mean", **more: Any
) -> Layers:
    """Return a point for each model, and a bar across at the ``middle`` of those of one category (mean or median)."""
    upright = y.kind == "Q"
    dots = points(data, x, y, by, **{"size": 45} | more)
    ticks = alt.Chart(data).mark_tick(thickness=3, size=17, orient="horizontal" if upright else "vertical")
    name = "xOffset" if upright else "yOffset"
    marks = ticks.encode(**{name: dots[-1].encoding[name]}) if more.get("apart") else ticks
    at: Any = y.at(alt.Y) if upright else x.at(alt.X)
    at.shorthand = f"{middle}({at.shorthand.partition(':')[0]}):Q"
    placed = {"x": x.at(alt.X), "y": at} if upright else {"x": at, "y": y.at(alt.Y)}
    return [marks.encode(**placed, color=dots[-1].encoding.color), *dots]


def cells(
    data: pl.DataFrame,
    x: Axis,
    y: Axis,
    field: str,
    title: str,
    *,
    domain: Sequence[float] = (0, 1),
    colours: Sequence[str] = BLUES,
    form: str | None = None,
    text: str | None = None,
    tips: Sequence[str] = (),
    size: int = SMALL,
    legend: Any = "bottom",
) -> Layers:
    """Return a heat map of ``field``; ``form`` prints the values into the cells, or the column ``text`` does.

    ``domain`` is that of the colours, the same in all panels of a figure, as ends or with a number for each colour.
    """
    low, high = domain[0], domain[-1]
    spots = (
        domain
        if len(domain) == len(colours)
        else [low + (high - low) * i / (len(colours) - 1) for i in range(len(colours))]
    )
    upright = legend in ("left", "right")
    ticks = alt.Legend(
        orient=legend,
        gradientLength=140 if upright else 240,
        values=_quarters(low, high),
        labelExpr="format(datum.value, '.3~g')",
    )
    straight: dict[str, Any] = {"interpolate": "rgb"} if colours is DIVERGING else {}  # else hues between them
    scale = alt.Scale(domain=list(spots), range=list(colours), clamp=True, **straight)
    base = alt.Chart(data).encode(x=x.at(alt.X), y=y.at(alt.Y))
    found: Layers = [
        base.transform_filter(f"isValid(datum['{field}'])")
        .mark_rect(stroke="white", strokeWidth=1)
        .encode(
            color=alt.Color(f"{field}:Q", title=title, scale=scale, legend=ticks),
            tooltip=_tips(data, x, y, "", [field, *tips]),
        )
    ]
    if form or text:
        dark = [f"datum['{field}'] > {low + 0.6 * (high - low)}"]
        if colours is DIVERGING:
            dark = [f"abs(datum['{field}']) > {0.75 * high}"]
        ink = alt.condition(dark[0], alt.value("white"), alt.value(charts.INK))
        printed = alt.Text(f"{text}:N") if text else alt.Text(f"{field}:Q", format=form or "")
        found.append(base.mark_text(fontSize=size).encode(text=printed, color=ink))
    return found


def rule(
    axis: Axis,
    at: float,
    word: str | None = None,
    *,
    upright: bool = False,
    dash: Sequence[int] = DOTTED,
    colour: str = charts.GREY,
    end: bool = False,
    below: bool = False,
) -> Layers:
    """Return a line across a panel at a value of ``axis``, upright if that is the one along x, and its name.

    The name stands at the beginning of the line or, with ``end``, at its end; above it, or with ``below`` under it.
    That of an upright line stands right of it or, with ``end``, left; at the top or, with ``below``, at the bottom.
    """
    frame = pl.DataFrame({"at": [at], "word": [word or ""]})
    base = alt.Chart(frame).encode(**{"x" if upright else "y": axis.at(alt.X if upright else alt.Y, "at")})
    found: Layers = [base.mark_rule(color=colour, strokeDash=list(dash), strokeWidth=1.5, tooltip=None)]
    if word:
        settings: dict[str, Any] = {"color": charts.INK if colour == charts.GREY else colour, "fontSize": SMALL}
        place: dict[str, Any]
        if upright:
            settings |= {"align": "right" if end else "left", "dx": -4 if end else 4, "dy": -4 if below else 2}
            settings |= {"baseline": "bottom" if below else "top"}
            place = {"y": alt.value("height" if below else 0)}
        else:
            settings |= {"align": "right" if end else "left", "baseline": "top" if below else "bottom"}
            settings |= {"dx": -3 if end else 3, "dy": 3 if below else -2}
            place = {"x": alt.value("width" if end else 0)}
        found.append(base.mark_text(**settings).encode(**place, text="word:N"))
    return found


def _beside(field: str, by: Kinds | str, upright: bool) -> Any:
    """Return the channel by which marks of one category stand beside each other."""
    channel: Any = alt.XOffset if upright else alt.YOffset
    if not isinstance(by, Kinds) or field != by.field:
        return channel(f"{field}:N")
    return channel(f"{field}:N", sort=list(by.looks), scale=alt.Scale(domain=list(by.looks), paddingOuter=0.5))


def _apart(each: str | None) -> dict[str, Any]:
    return {"detail": f"{each}:N"} if each else {}


def _filled(colour: str, hollow: str | None) -> Any:
    if hollow is None:
        return alt.value(colour)
    return alt.condition(f"datum['{hollow}'] === false", alt.value("white"), alt.value(colour))


def _quarters(low: float, high: float) -> list[float]:
    return [low + (high - low) * part for part in (0, 0.25, 0.5, 0.75, 1)]


def _tips(data: pl.DataFrame, x: Axis, y: Axis, by: Kinds | str, more: Sequence[str]) -> list[alt.Tooltip]:
    """Return the tooltip of a mark: its kind, its place, how many models it stands for, and ``more``."""
    named = [by.field] if isinstance(by, Kinds) else []
    usual = [name for name in ("n", "interval") if name in data.columns]
    found = []
    for name in dict.fromkeys([*named, x.field, y.field, *usual, *more]):
        kind = data.schema.get(name)
        if kind is not None and kind.is_float():
            found.append(alt.Tooltip(f"{name}:Q", format=".4~g"))
        elif kind is not None:
            found.append(alt.Tooltip(f"{name}:{'Q' if kind.is_numeric() else 'N'}"))
    return found


# Panels and figures


def panel(layers: Layers, title: str | None = None, width: Any = 270, height: Any = 200, note: str = "") -> Panel:
    """Return layers as one panel; its title, and the ``note`` below that, stand above its axes."""
    more: dict[str, Any] = {}
    if title is not None:
        told: dict[str, Any] = (
            {"subtitle": broken(note, width if isinstance(width, int) else 300, SMALL)} if note else {}
        )
        more["title"] = alt.TitleParams(
            title, fontSize=charts.SIZE, subtitleFontSize=SMALL, subtitlePadding=3, offset=6, frame="group", **told
        )
    return alt.layer(*map(charts.shared, layers)).properties(width=width, height=height, **more)


def grid(panels: Sequence[Panel], columns: int = 2, *, shared: bool = True, spacing: int = 26) -> Panel:
    """Return panels row by row, with one legend for all or, unless ``shared``, each with its own.

    Raises NothingError if there are none.
    """
    if not panels:
        raise NothingError(UNTRAINED)
    rows = [alt.hconcat(*panels[i : i + columns], spacing=spacing) for i in range(0, len(panels), columns)]
    made: Any = rows[0] if len(rows) == 1 else alt.vconcat(*rows, spacing=18)
    how: Any = "shared" if shared else "independent"
    return made.resolve_scale(color=how, strokeDash=how, shape=how, fill=how)


def split(data: pl.DataFrame, field: str) -> list[tuple[str, pl.DataFrame]]:
    """Return the rows of each value of ``field``, in the order in which they come."""
    return [(str(name), rows) for (name,), rows in data.group_by(field, maintain_order=True)]


def figure(
    chart: Panel | Layers,
    data: pl.DataFrame,
    title: str,
    *notes: str,
    told: str = "",
    width: Any = 460,
    height: Any = 240,
) -> Figure:
    """Return a figure: its title is what was found, ``notes`` say n and what bands, bars and dashes are, and ``told``
    is what it shows, for those who do not see it. Layers become one panel of ``width`` and ``height``."""
    made = panel(chart, None, width, height) if isinstance(chart, list) else chart
    lines_ = [line for note in notes if note for line in broken(note, WIDE, charts.SIZE)]
    more: dict[str, Any] = {"subtitle": lines_} if lines_ else {}
    head = alt.TitleParams(broken(title, WIDE, 15, bold=True), **more)
    words = f"{title}. {told}".strip()
    return made.properties(title=head, description=words if words.endswith(".") else f"{words}."), data


def broken(text: str, width: float, size: float, bold: bool = False) -> list[str]:
    """Return ``text`` in lines of at most so many pixels, broken between words."""
    found: list[str] = []
    for word in text.split():
        longer = f"{found[-1]} {word}" if found else word
        if found and (drawings.width(longer, size, bold) or len(longer) * size * 0.5) > width:
            found.append(word)
        else:
            found[-1:] = [longer]
    return found


# Words


class _Words(string.Formatter):
    """Formats numbers as prose has them: an en dash for none, a real minus."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None:
            return "–"
        made: str = super().format_field(value, format_spec)
        return made.replace("-", "−") if isinstance(value, int | float) else made


def tell(frame: pl.DataFrame, pattern: str, between: str = "; ") -> str:
    """Return ``pattern`` for each row, its columns in braces, as in ``"{label}: {value:.2f}"``."""
    return between.join(_Words().vformat(pattern, (), row) for row in frame.iter_rows(named=True))


def least(values: pl.Series) -> float:
    """Return the least of ``values``; not a number if there are none."""
    return float(values.min()) if values.drop_nulls().len() else math.nan  # type: ignore[arg-type]


def most(values: pl.Series) -> float:
    """Return the largest of ``values``; not a number if there are none."""
    return float(values.max()) if values.drop_nulls().len() else math.nan  # type: ignore[arg-type]


def about(value: float | None) -> str:
    """Return a number with two significant digits, as sentences have it: ``680,000``, ``0.00023``."""
    return "–" if value is None else f"{float(f'{value:.2g}'):,.10g}".replace("-", "−")


def count(numbers: pl.Series | Iterable[int], noun: str) -> str:
    """Return how many there are: ``5 models``, ``1 model``, ``3 to 5 models`` where numbers differ."""
    known = sorted({int(number) for number in numbers if number is not None})
    if not known:
        return f"no {noun}s"
    span = str(known[0]) if len(known) == 1 else f"{known[0]} to {known[-1]}"
    return f"{span} {noun}{'' if known == [1] else 's'}"


def spread(data: pl.DataFrame, mark: str, of: str = "over models") -> str:
    """Return what intervals are: ``bands: 95 % intervals over models (Student)``; nothing where there are none.

    Reads the columns ``interval`` and, where there is one, ``confidence``.
    """
    known = data.filter(pl.col("interval") != NONE).drop_nulls("lo")
    if not known.height:
        return ""
    kinds_ = " or ".join(known["interval"].unique(maintain_order=True))
    sure = f"{known['confidence'][0]:.0%}".replace("%", " %") if "confidence" in known.columns else "95 %"
    return f"{mark}: {sure} intervals {of} ({kinds_})"
