"""Models of a log density ratio: exponential families and a residual network."""
