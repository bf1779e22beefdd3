"""The experiments of the study, a module each."""
