"""Balance violation against length generalisation (Wen et al. 2023, Figure 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.kit import plots
from pipeline.kit.charts import Figure
from pipeline.studies.dyck.figures.common import scatter
from pipeline.studies.dyck.names import COMPLETE

if TYPE_CHECKING:
    from pipeline.kit.results import Results


@plots.drawn("Balance violation and accuracy at length")
def fig3(context: Results) -> Figure:
    """Figure 3: balance violation against accuracy at length, one point per model, both arms."""
    return scatter(context, COMPLETE, "trained on complete strings")
