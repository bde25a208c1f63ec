"""Stories of specs: each field of a Cluster that is set, by what differs from a Cluster without it.

The fields and their values are those of ``tests/unit/test_every_field_acts.py`` and ``test_every_field_counts.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from slinky_api import labels
from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.cluster.kind import Cluster
from tests.unit import test_every_field_acts as acts
from tests.unit import test_every_field_counts as counts
from tests.unit.cluster.stories.seeded import Story
from tests.unit.cluster.stories.site import Site
from tests.unit.cluster.world import cluster_object

PASSES = 3
"""After which everything has been written that a new Cluster needs."""

_KNOWN: dict[str, tuple[str, ...]] = {}
"""What is recorded of Clusters without the field, by their specs."""


async def lived(site: Site, spec: Mapping[str, Any]) -> None:
    """A Cluster with Secrets and texts that comes up and is deleted."""
    for name, data in acts.SECRETS.items():
        site.secret(name, data, annotations={labels.ANNOTATION_SECRET_SERVER: acts.SERVERS})
    for name, source in acts.TEXTS.items():
        site.texts(name, source.texts)
    site.edit(spec)
    site.node_set("compute")
    await site.rounds(PASSES)
    site.delete()
    await site.rounds(1)


async def field(site: Site, spec: Mapping[str, Any], base: Mapping[str, Any]) -> None:
    """What differs by a field."""
    key = json.dumps(base, sort_keys=True)
    if key not in _KNOWN:
        other = Site({}, dict(site.references))
        await lived(other, base)
        _ = other.telling.text()
        _KNOWN[key] = tuple(other.telling.lines)
    await lived(site, spec)
    site.telling.beside(_KNOWN[key])


async def switched_off(site: Site, spec: Mapping[str, Any]) -> None:
    """Fields that have no effect with the operator's settings."""
    site.off = tuple(counts.SWITCHED)
    site.begin()
    site.edit(spec)
    await site.runs()
    site.off = ()
    site.begin()
    await site.settle()


def _valid(spec: Mapping[str, Any]) -> bool:
    try:
        _ = Cluster.parse(cluster_object(spec))
    except InvalidObjectError:
        return False
    return True


def _stories() -> Mapping[str, Story]:
    found: dict[str, Story] = {}
    for path in acts.LEAVES:
        leaf = acts.Leaf(path)
        if path not in acts.GRANTS and _valid(leaf.changed_in(leaf.base)):
            found[path] = partial(field, spec=leaf.changed_in(leaf.base), base=leaf.base)
    wholes = (counts.MANAGED, *counts.MANAGED_OTHERWISE, *counts.ELSEWHERE)
    for number, spec in enumerate(wholes):
        found[f"whole {number + 1}"] = partial(field, spec=spec, base={})
    for path, spec in counts.UNSUPPORTED.items():
        found[f"not supported: {path}"] = partial(field, spec=spec, base=counts.ELSEWHERE[0])
    for path, spec in counts.SWITCHED.items():
        found[f"switched off: {path}"] = partial(switched_off, spec=spec)
    return found


STORIES = _stories()
