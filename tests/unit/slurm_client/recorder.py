"""A record that remembers which of its keys a decoder asked for."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

__all__ = ["Recorder"]


class Recorder(dict[str, Any]):
    """Remembers which keys were asked for."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.asked: set[str] = set()

    @override
    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)
