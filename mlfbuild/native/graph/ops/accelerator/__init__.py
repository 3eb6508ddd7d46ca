"""Parts of a network that another device computes."""
