"""A running gateway among peers that mean harm. Nothing here is random that a seed does not fix."""
