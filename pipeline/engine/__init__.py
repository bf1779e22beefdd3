"""Snakemake and DVC in step: the graph, what is fresh, and how one job runs."""
