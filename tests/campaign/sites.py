"""Several sites side by side, each a local Kubernetes and a process of its own: one that is free takes the next round.

A round mostly waits, so that two cores play several. What one round is, is left to :mod:`tests.campaign.player`.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.sharedctypes import Synchronized
from typing import TypeVar

T = TypeVar("T")


def names(name: str, count: int) -> list[str]:
    """Names of the local Kubernetes of so many sites."""
    return [name, *(f"{name}-{number}" for number in range(2, count + 1))]


def shared(items: Sequence[T], taken: Synchronized[int]) -> Iterator[T]:
    """What this process takes of items that others take, too: each is taken once, in order."""
    while True:
        with taken.get_lock():
            number = taken.value
            taken.value = number + 1
        if number >= len(items):
            return
        yield items[number]


def side_by_side(sites: Sequence[str], items: Sequence[T], play: Callable[[str, Iterator[T]], int]) -> int:
    """Play items at all sites, and return the sum of what each returns.

    A signal that ends this process ends them all, and waits until each has left nothing behind.

    Parameters
    ----------
    play
        Plays at the site of this name what it takes, in a process of its own, and returns less than 100.
    """
    context = multiprocessing.get_context("fork")
    taken = context.Value("i", 0)
    processes = [context.Process(target=_play, args=(play, site, items, taken), name=site) for site in sites]
    try:
        for one in processes:
            one.start()
        for one in processes:
            one.join()
    finally:
        for one in processes:
            if one.is_alive():
                one.terminate()
        for one in processes:
            one.join()
    return sum(abs(one.exitcode or 0) for one in processes)


def _play(play: Callable[[str, Iterator[T]], int], site: str, items: Sequence[T], taken: Synchronized[int]) -> None:
    sys.exit(min(play(site, shared(items, taken)), 99))
