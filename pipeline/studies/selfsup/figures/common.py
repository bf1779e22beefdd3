"""What figures of this study share."""

from __future__ import annotations

import altair as alt

SHARE = alt.Scale(domain=[0, 1])
