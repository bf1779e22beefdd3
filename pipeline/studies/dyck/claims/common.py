"""What claims of this study share."""

from __future__ import annotations

RANDOM_MAPS = "published, N = 16"  # group of the theory check with the published variation of random maps on D4
SECTION_4_1, SECTION_4_2 = (f"Wen et al. 2023, section {number}" for number in ("4.1", "4.2"))
APPENDIX_C_7, APPENDIX_D_2 = (f"Wen et al. 2023, appendix {number}" for number in ("C.7", "D.2"))
