"""What is measured of translators, pure functions of arrays."""
