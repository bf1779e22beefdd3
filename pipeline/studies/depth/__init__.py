"""What Transformers can learn at each depth (Chen and Zou 2024)."""
