"""What the studies share, a module per purpose, so that each step names just what it uses."""
