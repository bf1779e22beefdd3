"""One package per study; no study imports another."""
