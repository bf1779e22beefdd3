"""What claims of this study share."""

from __future__ import annotations

PROBE_LENGTH = 16
RANDOM_MAPS = "published-{}"  # theory check that holds the published variation of random maps of this size
SECTION_2, SECTION_3, SECTION_4_1, SECTION_4_2 = (
    f"Wen et al. 2023, section {number}" for number in ("2", "3", "4.1", "4.2")
)
APPENDIX_C_7, APPENDIX_D_2 = (f"Wen et al. 2023, appendix {number}" for number in ("C.7", "D.2"))
