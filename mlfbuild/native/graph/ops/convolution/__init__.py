"""Filters that move over an image."""
