"""What is done to trained models before they are measured again; here nothing."""
