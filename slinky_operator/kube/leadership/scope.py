"""Which namespaces a release of this operator serves, and which of them another serves too. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from typing_extensions import override

from slinky_api import labels
from slinky_operator.kube.objects import Object

ALL: Final = "*"
"""In a Lease: all namespaces."""

MANY: Final = 1000
"""Namespaces that are read of a Lease."""

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Release:
    """A release, by what its Lease says.

    Parameters
    ----------
    lease
        The Lease.
    serves
        The namespaces; `None` for all.
    leaves
        Of these, those that it leaves to others.
    works
        Whether it has found nobody before it.
    service_account
        By whose rights it is believed; empty if it does not say.
    age
        Sorts releases, the oldest first, by the API server's clock.
    renews
        Whether the Lease was seen to change; if not, it may be what a former release has left.
    """

    lease: Object
    serves: frozenset[str] | None
    leaves: frozenset[str]
    works: bool
    service_account: str
    age: tuple[str, str]
    renews: bool = False

    @property
    def namespace(self) -> str:
        """Namespace of the Lease."""
        return str(self.lease["metadata"].get("namespace") or "")

    @property
    def title(self) -> str:
        """The Lease, for people."""
        return f"{self.namespace}/{self.lease['metadata']['name']}"

    @property
    def holder(self) -> str:
        """Who holds the Lease, for people."""
        return str((self.lease.get("spec") or {}).get("holderIdentity") or "nobody")[:100]


@dataclass(frozen=True, slots=True)
class Shared:
    """What two releases both serve.

    Parameters
    ----------
    everything
        Whether that is all that this release serves.
    namespaces
        Which namespaces; empty with `everything` where both serve all.
    """

    everything: bool
    namespaces: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return self.everything or bool(self.namespaces)

    @override
    def __str__(self) -> str:
        """The namespaces, for people."""
        if not self.namespaces:
            return "all namespaces"
        shown = sorted(self.namespaces)
        more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""  # noqa: PLR2004
        return f"namespace{'s' if len(shown) > 1 else ''} {', '.join(shown[:5])}{more}"


def release_of(lease: Object, *, renews: bool = False) -> Release:
    """Read a Lease; anyone may have written it."""
    metadata = lease["metadata"]
    said: Mapping[str, Any] = metadata.get("annotations") or {}
    serves = str(said.get(labels.ANNOTATION_SERVES) or ALL)
    account = str(said.get(labels.ANNOTATION_SERVICE_ACCOUNT) or "")
    return Release(
        lease,
        None if serves == ALL else _names(serves),
        _names(str(said.get(labels.ANNOTATION_LEAVES) or "")),
        said.get(labels.ANNOTATION_WORKS) == "true",
        account if _NAME.fullmatch(account) else "",
        age(lease),
        renews,
    )


def age(lease: Object) -> tuple[str, str]:
    """Sorts Leases, the oldest first."""
    metadata = lease["metadata"]
    return str(metadata.get("creationTimestamp") or ""), str(metadata.get("uid") or "")


def shared(own: Collection[str], other: Release) -> Shared:
    """What a release with these namespaces (none for all) and another one both serve."""
    if not own:
        return (
            Shared(everything=True)
            if other.serves is None
            else Shared(everything=False, namespaces=other.serves - other.leaves)
        )
    mine = frozenset(own)
    both = (mine if other.serves is None else mine & other.serves) - other.leaves
    return Shared(everything=both == mine, namespaces=both)


def _names(text: str) -> frozenset[str]:
    return frozenset(part for part in text.split(",", MANY)[:MANY] if _NAME.fullmatch(part))
