"""How the fake's slurmdbd answers: lists, what was not found, what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client.testing.answers.calls import Call, Reply, error
from slurm_client.testing.database.records import Record, written
from slurm_client.testing.database.store import Database

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from slurm_client.testing.world import World

_FALSE = {"0", "false", "no"}


class DatabaseAnswers:
    """
    Writes answers.

    Parameters
    ----------
    world
        The pretended cluster, whose release decides statuses and texts.
    """

    def __init__(self, world: World) -> None:
        self.database = Database()
        self._world = world

    @property
    def _refused_status(self) -> int:
        return 422 if self._world.clears_reasons else 500

    def _refused(self, number: int, description: str, *, sentence: str = "", source: str = "") -> Reply:
        return Reply(status=self._refused_status, errors=[error(number, description, sentence, source)])

    def _missing(self, path: str, key: str) -> Reply:
        description = f"Missing required field '{key}' in dictionary"
        return self._refused(9200, description, sentence="Unable to resolve path", source=f"{path}/{key}/")

    def _list(
        self, call: Call, key: str, kind: str, found: Iterable[Record], what: str = "", source: str = ""
    ) -> Reply:
        made = [written(kind, each, call.version) for each in found]
        if made or not what:
            return Reply({key: made})
        return Reply({key: []}, warnings=[self._nothing(what, source)])

    def _nothing(self, what: str, source: str) -> dict[str, Any]:
        # Older releases show where in memory the function has its list.
        pointer = "" if self._world.clears_reasons else "0x7f0000000000"
        return {"description": f"slurmdb_{what}({pointer}) found nothing", "source": source}

    def _unnamed(self, call: Call, key: str, required: Iterable[str]) -> Reply | None:
        """Refuse a body without its list, or with an entry that lacks a key."""
        body = call.body or {}
        if not isinstance(body, dict) or key not in body:
            return self._missing("#", key)
        for place, entry in enumerate(body[key] or ()):
            for name in required:
                if name not in entry:
                    return self._missing(f"#/{key}[{place}]", name)
        return None


def asked(query: Mapping[str, str], key: str) -> bool:
    """Whether a flag is in the query; it needs no value."""
    other = {"with_assocs": "WithAssociations", "with_coords": "WithCoordinators"}.get(key, key)
    return any(name in query and query[name].lower() not in _FALSE for name in (key, other))


def in_order(named: Mapping[str, Record]) -> list[Record]:
    """Return records by name."""
    return [named[name] for name in sorted(named)]
