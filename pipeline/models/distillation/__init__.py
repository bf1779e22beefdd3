"""Models of the distillation study: teachers and students."""
