"""Theory checks of the study, a module for each."""
