"""From closed forms, quadrature, paths and runs to result tables: a module for each experiment."""
