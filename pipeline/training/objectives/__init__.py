"""What a run minimises, one module per objective."""
