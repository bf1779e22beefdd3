"""What makes a new study: files to start from, and the command that fills them in."""
