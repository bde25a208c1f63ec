"""Which parts of a user's ConfigMap count as text."""

from __future__ import annotations

import base64

from slinky_operator.cluster.execute.config_sources import text_source


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def test_text_counts_wherever_it_stands() -> None:
    found = text_source(
        {
            "metadata": {"name": "mine"},
            "data": {"a.conf": "a=1"},
            "binaryData": {"b.conf": encoded("b=ü".encode()), "logo": encoded(b"\x89PNG\xff"), "broken": "%"},
        }
    )
    assert found.exists
    assert found.texts == {"a.conf": "a=1", "b.conf": "b=ü"}
    assert found.not_text == ("broken", "logo")


def test_a_config_map_may_be_empty() -> None:
    assert text_source({"metadata": {"name": "mine"}}).texts == {}
