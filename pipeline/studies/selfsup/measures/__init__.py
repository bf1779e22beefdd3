"""What several experiments of the study measure alike."""
