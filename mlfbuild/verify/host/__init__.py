"""Runs archives on this machine: their C becomes a shared object, which numpy arrays go through."""

from mlfbuild.verify.host.model import Model, load

__all__ = ["Model", "load"]
