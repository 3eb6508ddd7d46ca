"""What is in a firmware image, and whose it is."""
