"""Figures of the depth study, a module per experiment (Chen and Zou 2024)."""
