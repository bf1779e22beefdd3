"""Theorems and closed forms of the Dyck study, executed."""
