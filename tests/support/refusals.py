"""What models are refused with."""

from __future__ import annotations

from mlfbuild.frontends.advice import CHANGE, EXPORT_AGAIN


def without_advice(message: str) -> str:
    """Return the place and the reason: without the advice that a message ends with whose reason has none itself."""
    for advice in (EXPORT_AGAIN, CHANGE):
        if message.endswith(f"; {advice}"):
            return message.removesuffix(f"; {advice}")
    assert "; " in message, "says what to do"
    return message
