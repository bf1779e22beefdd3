"""The figures of the Dyck study, an experiment a module (Wen et al. 2023)."""
