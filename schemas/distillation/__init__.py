"""Tables of the study distillation."""
