"""Add a model to a project: an entry in its file, vectors, a budget of today's size, and the C that calls it.

``project_text`` writes the entry into the text of the project file, of which all other lines stay as they are, and
``adding`` does everything that may fail before it writes the first file.
"""
