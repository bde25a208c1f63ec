"""Names of pods with ordinals: `<nodeset>-<n>`, which are Slurm node names and host names as well."""

from __future__ import annotations

from collections.abc import Collection


def name(nodeset: str, ordinal: int, padding: int = 0) -> str:
    """Name of the pod with an ordinal, written with at least `padding` digits."""
    return f"{nodeset}-{ordinal:0{max(padding, 1)}d}"


def ordinal(nodeset: str, pod: str) -> int | None:
    """The ordinal in a name, or None if the name is not made that way."""
    head, dash, digits = pod.rpartition("-")
    if not dash or head != nodeset or not digits.isascii() or not digits.isdigit():
        return None
    return int(digits)


def lowest_free(taken: Collection[int], count: int) -> list[int]:
    """The lowest ordinals that are not taken, in order."""
    held = frozenset(taken)
    found: list[int] = []
    candidate = 0
    while len(found) < count:
        if candidate not in held:
            found.append(candidate)
        candidate += 1
    return found
