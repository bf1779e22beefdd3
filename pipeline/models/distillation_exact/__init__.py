"""Exact models of the distillation study: what the grammar implies, and attention with weights written down."""
