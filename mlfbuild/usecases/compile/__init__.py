"""Compile one model file without a project: into an archive file, or into an ``Archive`` for scripts and notebooks."""
