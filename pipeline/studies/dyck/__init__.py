"""Bounded Dyck grammars and the limits of myopic interpretability (Wen et al. 2023)."""
