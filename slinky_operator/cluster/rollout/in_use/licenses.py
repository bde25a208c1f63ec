"""Licenses of slurm.conf that stay while pending jobs or reservations name them. Pure.

Without its license a pending job of 24.11 starts as if it had asked for none, and one of 26.05 is held; a reservation
that has the license is deleted, and its jobs are held (tried: `tests/integration/slurm_conf/test_references.py`). A job
that has started keeps what it has. A lower number stays away while a pending job asks for more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from slinky_operator.cluster.rollout.in_use.names import licenses_in
from slinky_operator.cluster.rollout.in_use.parameters import quoted, users
from slinky_operator.slurm.conf.syntax.parsed import Parsed

KEY: Final = "licenses"

Who = TypeVar("Who", int, str)
"""The id of a job, or the name of a reservation."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What pending jobs and reservations ask for."""

    jobs: Mapping[int, str] = field(default_factory=dict)
    """The request of each job."""

    reservations: Mapping[str, str] = field(default_factory=dict)


def lowered(old: Parsed, new: Parsed) -> dict[str, int]:
    """Licenses that are removed, or of which there will be fewer: how many are left."""
    before, after = _numbers(old), _numbers(new)
    return {name: after.get(name, 0) for name, count in before.items() if after.get(name, 0) < count}


def licenses_that_stay(
    less: Mapping[str, int], old: Parsed, new: Parsed, wish: Wish | None, silence: str, why: list[str]
) -> Mapping[str, tuple[str, ...]]:
    """The key with the licenses that stay; nothing if all changes may be applied.

    Parameters
    ----------
    less
        As `lowered` gives them.
    old, new
        The running and the wanted configuration.
    wish
        Slurm's answer; `None` if there is none, and then everything that is lowered stays.
    silence
        Why there is no answer.
    why
        For people: what stays is added.
    """
    if not less:
        return {}
    stays: list[str] = []
    jobs = _requests(wish.jobs) if wish is not None else {}
    reservations = _requests(wish.reservations) if wish is not None else {}
    before = _items(old)
    for name, left in less.items():
        if wish is None:
            whom = f"until Slurm says who asks for it{quoted(silence)}"
        else:
            by_jobs, by_reservations = _asking(jobs, name, left), _asking(reservations, name, left)
            if not by_jobs and not by_reservations:
                continue
            whom = f"for {users(by_jobs, by_reservations)}"
        stays.append(name)
        why.append(f"license {before[name]} stays {whom}")
    if not stays:
        return {}
    items = [before[name] if name in stays else text for name, text in _items(new).items()]
    items += [before[name] for name in stays if name not in _items(new)]
    return {KEY: (",".join(items),)}


def _asking(requests: Mapping[Who, Mapping[str, int] | None], name: str, left: int) -> list[Who]:
    """Who asks for more of a license than there will be, or for something that cannot be read."""
    return [who for who, wanted in requests.items() if wanted is None or wanted.get(name, 0) > left]


def _requests(texts: Mapping[Who, str]) -> dict[Who, dict[str, int] | None]:
    return {who: licenses_in(text) for who, text in texts.items() if text}


def _items(conf: Parsed) -> dict[str, str]:
    """Each license as written, by name."""
    words = [word.strip() for text in conf.keys.get(KEY, ()) for word in text.replace(";", ",").split(",")]
    return {word.split(":", 1)[0].split("*", 1)[0]: word for word in words if word}


def _numbers(conf: Parsed) -> dict[str, int]:
    return {name: _number(word) for name, word in _items(conf).items()}


def _number(word: str) -> int:
    # A number that is none is left to Slurm to reject.
    count = word.replace("*", ":").partition(":")[2]
    return int(count) if count.isascii() and count.isdigit() and len(count) <= 10 else 1  # noqa: PLR2004 - of 32 bits
