"""No objective."""
