"""The JSON form of a report: its schema, reading and checking a file, and comparing two reports."""
