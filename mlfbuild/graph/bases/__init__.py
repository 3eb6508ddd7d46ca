"""What operators build on: classes for those of one tensor, of two, with windows, that move elements; rules; sums."""
