"""The steps of the graph, one module each."""
