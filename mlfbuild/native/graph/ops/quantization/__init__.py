"""Changes of the type or of the scale of elements."""
