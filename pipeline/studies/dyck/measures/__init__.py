"""What is measured on one model, and the rows that several experiments make of it."""
