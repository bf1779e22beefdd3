"""What gates of this study share."""

from __future__ import annotations

SECTION = "Liu 2024, section {}"
DIGITISED = "read from the graphic"  # of a published number that is printed nowhere
