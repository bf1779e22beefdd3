"""What the theory checks of a study share; here nothing."""
