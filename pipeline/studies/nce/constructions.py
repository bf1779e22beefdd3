"""What the theory checks of the NCE study share."""
