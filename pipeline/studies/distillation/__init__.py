"""The study distillation."""
