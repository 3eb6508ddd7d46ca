"""How deep the stack of an image's functions gets at most, by its own instructions."""
