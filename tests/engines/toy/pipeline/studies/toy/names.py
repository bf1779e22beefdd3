"""The ids that code of the toy study names."""

RUNS = ("toy-a",)
DATASETS = ("toy-numbers",)
THEORY = ("toy-identity",)
