"""The figures of the NCE study (Liu 2024, section 4.1): a module for each experiment."""
