"""Analyses of the study, a module for each experiment."""
