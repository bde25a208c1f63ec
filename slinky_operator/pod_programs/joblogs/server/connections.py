"""Who may have how many connections at a time: shares of addresses, of the node's own pod, and of users.

A job reaches the server from every address of the pod in which it runs, loopback included: together these count as one.
Once a caller has shown a token, its connection counts to the user whose file it opened, wherever it comes from. Where
all connections are taken, the holder of the most gives its oldest one to a holder of fewer, so that nobody is kept out
by one who has many: its caller asks again from where it was.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from slinky_operator.pod_programs.joblogs.log import Log

OWN: Final = "this pod"
"""Whom connections from all addresses of the pod itself count to."""

MARGIN: Final = 2
"""Connections that a holder must have more than another one to give one to it: none goes back and forth."""


def holder_of(address: tuple[Any, ...]) -> str:
    """Whom a new connection counts to: its address, or `OWN`.

    Parameters
    ----------
    address
        Of the caller, as `accept` gives it.
    """
    host = str(address[0])
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    known = mapped or found
    is_own = known.is_loopback or _is_bindable(str(known), address[2:] if mapped is None else ())
    return OWN if is_own else str(known)


def _is_bindable(host: str, scope: tuple[Any, ...]) -> bool:
    """Whether this pod has an address: the kernel binds to no other one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0, *scope))
        except OSError:
            return False
    return True


def user(uid: int) -> str:
    """Whom the connections of a user count to."""
    return f"uid {uid}"


@dataclass(slots=True)
class Place:
    """One connection.

    Parameters
    ----------
    connection
        Its socket.
    holder
        Whom it counts to.
    """

    connection: socket.socket
    holder: str
    caller: str = ""
    """Whom it counted to when it was opened: its address, or `OWN`."""
    is_kept: bool = False
    """Whether it is not given away: it carries a copy, which has limits of its own."""
    is_given_away: bool = False


class Connections:
    """All connections of a server.

    Parameters
    ----------
    most
        At a time.
    per_holder
        Of one address, or of the pod's own together.
    per_user
        Of one user, after a token was shown.
    log
        Takes lines.
    """

    def __init__(self, most: int, per_holder: int, per_user: int, log: Log) -> None:
        self._most, self._per_holder, self._per_user = most, per_holder, per_user
        self._log = log
        self._lock = threading.Lock()
        self._places: dict[int, Place] = {}
        """The oldest first."""
        self._counts: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._places)

    def admit(self, connection: socket.socket, holder: str) -> Place | None:
        """Count a new connection; None if it has no place."""
        with self._lock:
            if self._counts[holder] >= self._per_holder:
                return None
            if len(self._places) >= self._most and not self._make_room(holder):
                return None
            place = Place(connection, holder, holder)
            self._places[id(place)] = place
            self._counts[holder] += 1
            return place

    def is_of(self, place: Place, uid: int) -> bool:
        """Count a connection to a user from now on; false if that user has too many."""
        name = user(uid)
        with self._lock:
            if place.is_given_away:
                return False
            if place.holder == name:
                return True
            if self._counts[name] >= self._per_user:
                return False
            self._count(place.holder, -1)
            place.holder = name
            self._count(name, 1)
            return True

    def keep(self, place: Place) -> None:
        """Give a connection to nobody else from now on."""
        with self._lock:
            place.is_kept = True

    def leave(self, place: Place) -> None:
        """Forget a connection that has ended."""
        with self._lock:
            self._forget(place)

    def _make_room(self, holder: str) -> bool:
        """Take a connection from the holder of the most, for one of fewer."""
        given = [one for one in self._places.values() if not one.is_kept]
        if not given:
            return False
        counts = Counter(one.holder for one in given)
        most, count = counts.most_common(1)[0]
        if count < self._counts[holder] + MARGIN:
            return False
        place = next(one for one in given if one.holder == most)
        place.is_given_away = True
        self._forget(place)
        self._log(f"all {self._most} connections are taken: one of {most}, which has {count}, is given to {holder}")
        try:
            # Its thread sees the end, and closes it.
            place.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            # Its caller has gone already.
            return True
        return True

    def _forget(self, place: Place) -> None:
        if self._places.pop(id(place), None) is not None:
            self._count(place.holder, -1)

    def _count(self, holder: str, more: int) -> None:
        self._counts[holder] += more
        if not self._counts[holder]:
            del self._counts[holder]
