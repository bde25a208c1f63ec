"""
What models have in common that are read from an entry of an answer: the entry as slurmrestd wrote it, on request.

A model says what all data parsers say, and a server may say more. Kept is the text of the entry, which is read when it
is asked for: read, it would take several times its room.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["Entry", "keep"]


class Entry:
    """Base of the models that are read from one entry of an answer."""

    __slots__ = ("_written",)

    _written: str | Mapping[str, Any]

    @property
    def raw(self) -> Mapping[str, Any]:
        """
        The entry as slurmrestd wrote it, with the keys and shapes of the data parser in use; not to be changed.

        Kept only by a client made with ``keep_raw=True``, else there is no such attribute (AttributeError). It is no
        part of what the model says: it is neither compared nor copied, pickled or printed. Read it once and keep what
        you need, since it is parsed each time.
        """
        written: str | Mapping[str, Any] | None = getattr(self, "_written", None)
        if written is None:
            raise AttributeError(f"raw of a {type(self).__name__} is kept only by a client made with keep_raw=True")
        if isinstance(written, str):
            found: Mapping[str, Any] = json.loads(written)
            return found
        return written


def keep(model: Entry, written: str | Mapping[str, Any]) -> None:
    """Keep with a model what it was read from: the text of an object in JSON, or such an object."""
    # Models are frozen; this is no part of what they say.
    object.__setattr__(model, "_written", written)
