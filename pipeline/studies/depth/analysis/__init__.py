"""From trained models to result tables, a module per experiment (Chen and Zou 2024, section 6)."""
