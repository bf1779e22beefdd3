"""What is measured on one run, and what analyses of several experiments share."""
