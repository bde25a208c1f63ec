"""Waits until the API server lists the kinds to be watched.

A newly started API server lists groups of custom resources some time after it serves them. A client that checks only
once in that time, as kopf does, concludes that the kinds do not exist, and never watches them.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
from collections.abc import Iterable
from typing import Any, Final

import aiohttp

from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.resources import Resource

logger = logging.getLogger(__name__)

LOOK_EVERY: Final = 0.5
"""Seconds until the second look; then ever longer ones."""

LONGEST_PAUSE: Final = 5.0
"""Seconds between two looks at most."""

_TIMEOUT: Final = aiohttp.ClientTimeout(total=30.0)


async def until_shown(connection: Connection, resources: Iterable[Resource], pause: float = LOOK_EVERY) -> None:
    """Return once the API server's lists have all these kinds; until then, ask again and again."""
    wanted = {(resource.api_version, resource.plural) for resource in resources}
    last = ""
    for attempt in itertools.count():
        try:
            missing = wanted - await _shown(connection, {version for version, _ in wanted})
        except aiohttp.ClientResponseError as error:
            why = f"the API server does not list its kinds: {error.status} {error.message}"
        except (aiohttp.ClientError, TimeoutError, OSError):
            # `Connection` logs this.
            why = last
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            why = f"the API server's lists make no sense: {type(error).__name__}: {error}"
        else:
            if not missing:
                return
            why = f"the API server does not list {', '.join(sorted(plural for _, plural in missing))} yet"
        if why != last:
            logger.warning(why)
            last = why
        await asyncio.sleep(min(pause * 1.5 ** min(attempt, 20), LONGEST_PAUSE) * random.uniform(0.75, 1.0))  # noqa: S311


async def _shown(connection: Connection, versions: Iterable[str]) -> set[tuple[str, str]]:
    """API version and plural of all kinds in these versions."""
    groups = (await _get(connection, "/apis")).get("groups") or ()
    listed = {version["groupVersion"] for group in groups for version in group["versions"]}
    found = set()
    for version in listed.intersection(versions):
        kinds = (await _get(connection, f"/apis/{version}")).get("resources") or ()
        found |= {(version, kind["name"]) for kind in kinds}
    return found


async def _get(connection: Connection, path: str) -> dict[str, Any]:
    async with connection.request("GET", path, timeout=_TIMEOUT) as response:
        response.raise_for_status()
        answer: dict[str, Any] = await response.json()
        return answer
