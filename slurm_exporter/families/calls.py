"""Remote procedure calls that slurmctld served, by type and by user, and those that wait to be sent to nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from slurm_client.models.service import Diag, RpcStats
from slurm_exporter.families.scheduler import MICRO
from slurm_exporter.samples.budget import Kept, added, folded
from slurm_exporter.samples.family import Labels, Samples, counter, gauge
from slurm_exporter.samples.monotone import Monotone

CALLS = counter("rpcs", "Calls served, by message type.", "diag/: rpcs_by_message_type", ["type"])
CALL_SECONDS = counter("rpc_seconds", "Time to serve them.", "diag/: rpcs_by_message_type", ["type"], "seconds")
DROPPED = counter(
    "rpcs_dropped",
    "Calls refused by the rate limit (data parsers from v0.0.41 on).",
    "diag/: rpcs_by_message_type",
    ["type"],
)
USER_CALLS = counter("user_rpcs", "Calls served, by user: those with most time.", "diag/: rpcs_by_user", ["user"])
USER_SECONDS = counter("user_rpc_seconds", "Time to serve them.", "diag/: rpcs_by_user", ["user"], "seconds")
PENDING = gauge("rpcs_pending", "Calls to nodes that are still to be sent, by type.", "diag/: pending_rpcs", ["type"])

ALL: Final = (CALLS, CALL_SECONDS, DROPPED, USER_CALLS, USER_SECONDS, PENDING)

TYPES: Final = 128
"""Most message types with samples of their own; 26.05 has about 200, of which a cluster uses some forty."""


class Calls:
    """Counters of calls over the life of the exporter.

    Parameters
    ----------
    users
        How many users have samples of their own; 0 for none.
    """

    def __init__(self, users: int) -> None:
        self._users = users
        self._totals = {family: Monotone() for family in (CALLS, CALL_SECONDS, DROPPED, USER_CALLS, USER_SECONDS)}
        self._pending: dict[Labels, float] = {}
        self._kept_types, self._kept_users = Kept(TYPES), Kept(users)

    def update(self, diag: Diag) -> None:
        """Take in an answer; the same one twice changes nothing."""
        types, users = diag.rpcs_by_message, diag.rpcs_by_user if self._users else ()
        for family, found, value in (
            (CALLS, types, _count),
            (CALL_SECONDS, types, _seconds),
            (DROPPED, [each for each in types if each.dropped is not None], _dropped),
            (USER_CALLS, users, _count),
            (USER_SECONDS, users, _seconds),
        ):
            self._totals[family].update(_values(found, value), diag.since)
        self._pending = added((each.name, float(each.count)) for each in diag.pending_rpcs)

    def samples(self) -> Iterator[Samples]:
        """All families of calls."""
        types = self._kept_types.choose(self._totals[CALL_SECONDS].totals)
        for family in (CALLS, CALL_SECONDS, DROPPED):
            yield Samples(family, folded(self._totals[family].totals, types))
        users = self._kept_users.choose(self._totals[USER_SECONDS].totals)
        for family in (USER_CALLS, USER_SECONDS):
            yield Samples(family, folded(self._totals[family].totals, users))
        yield Samples(PENDING, folded(self._pending, types))


def _values(found: Iterable[RpcStats], value: Callable[[RpcStats], float]) -> dict[Labels, float]:
    return added((each.name, value(each)) for each in found)


def _count(stats: RpcStats) -> float:
    return stats.count


def _seconds(stats: RpcStats) -> float:
    return stats.total_time_us * MICRO


def _dropped(stats: RpcStats) -> float:
    return stats.dropped or 0
