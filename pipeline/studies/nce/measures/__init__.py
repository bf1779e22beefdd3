"""What several experiments of the NCE study measure alike."""
