"""The report: a static site that is read from disk, offline."""
