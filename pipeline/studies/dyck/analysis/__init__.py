"""From trained models to result tables, an experiment a module (Wen et al. 2023, section 4; chapter section 3.4)."""
