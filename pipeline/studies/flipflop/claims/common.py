"""What gates of this study share."""

from __future__ import annotations

SECTION = "Liu 2024, section {}"
