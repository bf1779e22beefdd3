"""Figures 2.2, 2.5, 2.6 and 2.10: value matrices."""

from __future__ import annotations

from pipeline.kit import plots
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.topic.figures.common import Panel, maps
from pipeline.studies.topic.names import (
    FROZEN_ADAM,
    FROZEN_PUBLISHED,
    FROZEN_SGD_CE,
    FROZEN_SGD_SQ,
    JOINT_ADAM,
    JOINT_LONG,
    JOINT_LONG_RELEASED,
    JOINT_PUBLISHED,
    JOINT_SGD_CE,
    JOINT_SGD_SQ,
    RELEASED_FROZEN,
    RELEASED_JOINT,
)

WORDS = 10
AXES = ("word that is predicted", "word that is seen")
ADAM_CE, SGD_CE, ADAM_SQ, SGD_SQ = ("cross-entropy, Adam", "cross-entropy, SGD", "squared, Adam", "squared, SGD")


def _four(
    context: Results,
    adam: str,
    sgd_ce: str,
    sgd_sq: str,
    ce: str,
    sq: str,
    what: str,
    published: str = "",
    released: str = "",
) -> Figure:
    """Return the four panels, and the third with published rate and averaged loss, of the text's and the released
    model, where these were trained."""
    value = "WV_plus_bias"
    panels = [
        Panel(SGD_CE, sgd_ce, ce, value),
        Panel(ADAM_CE, adam, ce, value),
        Panel(SGD_SQ, sgd_sq, sq, value),
        Panel(ADAM_SQ, adam, sq, value),
        Panel(f"{SGD_SQ}, published rate", published, "sq", value),
        Panel(f"{SGD_SQ}, published rate, released model", released, "sq", "WV"),
    ]
    return maps(context.table("matrices"), panels, what, WORDS, AXES)


@plots.drawn("Values, uniform attention, with L2")
def frozen_l2(context: Results) -> Figure:
    """Figure 2.2: values with uniform attention and an L2 penalty."""
    return _four(context, FROZEN_ADAM, FROZEN_SGD_CE, FROZEN_SGD_SQ, "ce-l2", "sq-l2", "Values, with L2")


@plots.drawn("Values, uniform attention, without L2")
def frozen(context: Results) -> Figure:
    """Figure 2.5: values with uniform attention and no penalty."""
    return _four(
        context, FROZEN_ADAM, FROZEN_SGD_CE, FROZEN_SGD_SQ, "ce", "sq", "Values", FROZEN_PUBLISHED, RELEASED_FROZEN
    )


@plots.drawn("Values, attention trained with them")
def joint(context: Results) -> Figure:
    """Figure 2.6: values of models of which everything is trained."""
    return _four(context, JOINT_ADAM, JOINT_SGD_CE, JOINT_SGD_SQ, "ce", "sq", "Values", JOINT_PUBLISHED, RELEASED_JOINT)


@plots.drawn("Diagonals and matchings of words")
def diagonal(context: Results) -> Figure:
    """Figure 2.10: squared loss without a penalty in closed form and, at scales where they are trained, of models that
    were trained for longer, with masked positions as keys and without."""
    value = "WV_plus_bias"
    panels = [
        Panel("closed form, uniform attention, no L2", "closed form, thesis", "l2 0", "WV_ols"),
        Panel("closed form, uniform attention, L2 0.001", "closed form, thesis", "l2 0.001", "WV_ridge"),
        Panel("trained attention, masks are keys", JOINT_LONG, "sq", value),
        Panel("trained attention, masks are no keys", JOINT_LONG_RELEASED, "sq", value),
    ]
    return maps(context.table("matrices"), panels, "Values, squared loss, Adam", WORDS, AXES)
