"""Models of the flip-flop study: weights and formulas written down."""
