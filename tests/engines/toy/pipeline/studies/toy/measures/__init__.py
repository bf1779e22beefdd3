"""What is measured on models of the toy study."""
