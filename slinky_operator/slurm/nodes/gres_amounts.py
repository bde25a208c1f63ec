"""Generic resources of a node as amounts, for rules that compare and add them."""

from __future__ import annotations

from slurm_client.notation import gres


def gres_amounts(text: str) -> tuple[tuple[str, int], ...]:
    """Generic resources in Slurm's notation, each kind and each type; none where they cannot be read."""
    found: dict[str, int] = {}
    try:
        parsed = gres.parse(text)
    except ValueError:
        return ()
    for one in parsed:
        for key in dict.fromkeys((one.name, f"{one.name}:{one.type}" if one.type else one.name)):
            found[key] = found.get(key, 0) + one.count
    return tuple(sorted(found.items()))
