"""What analyses of this study measure."""
