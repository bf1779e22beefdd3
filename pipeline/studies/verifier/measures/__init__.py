"""What is measured on one model, or shared by several experiments."""
