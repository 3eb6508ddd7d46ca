"""The text form of a report: tables for a terminal of 80 columns."""
