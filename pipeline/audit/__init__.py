"""What an auditor asks: where a result comes from, whether it is still that, and why it would change."""
