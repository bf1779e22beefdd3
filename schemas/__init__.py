"""Pandera models of every table."""
