"""Answers of slurmrestd that a test waits for: a daemon behind it may be on its way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hack.localkube.kubectl import wait_for
from slurm_client.errors import Unreachable
from tests.support.slurm_in_kubernetes import PATIENCE

T = TypeVar("T")


def answered(what: str, ask: Callable[[], T]) -> T:
    """Ask until there is an answer that has something; return it.

    Raises
    ------
    LocalKubeError
        There was none in time; its text has the last refusal for want of a daemon.
    SlurmError
        A daemon has refused.
    """
    found: list[T] = []

    def there() -> bool:
        found.append(ask())
        return bool(found[-1])

    wait_for(f"{what} from slurmrestd", there, PATIENCE, not_yet=(Unreachable,))
    return found[-1]
