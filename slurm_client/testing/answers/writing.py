"""How the fake writes its answers: with the words around them that slurmrestd has, and quickly where they are long."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from slurm_client.testing.answers import encode
from slurm_client.testing.answers.calls import Call, Reply, error
from slurm_client.testing.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Answers:
    """
    Writes answers.

    Parameters
    ----------
    world
        The pretended cluster.
    pretty
        Write JSON with line breaks and blanks as slurmrestd does; slower.
    """

    def __init__(self, world: World, *, pretty: bool) -> None:
        self.world = world
        self._pretty = pretty
        self._written: dict[tuple[str, str], tuple[object, str]] = {}

    def _written_reply(self, call: Call, reply: Reply) -> tuple[int, bytes, str]:
        if reply.raw is not None:
            return reply.status, reply.raw, "application/json"
        if reply.status == 304:
            return 304, b"", "application/json"
        service = "slurmdbd" if call.operation.startswith("db_") else "slurmctld"
        major, minor, micro = (*self.world.release.split("."), "0", "0")[:3]
        payload = {
            **reply.payload,
            "meta": {
                "plugin": {
                    "type": f"openapi/{service}",
                    "name": f"Slurm OpenAPI {service}",
                    "data_parser": f"data_parser/{call.version}",
                    "accounting_storage": "accounting_storage/slurmdbd" if service == "slurmdbd" else "",
                },
                "client": {"source": "127.0.0.1", "user": "root", "group": "root"},
                "command": [],
                "slurm": {
                    "version": {"major": major, "micro": micro, "minor": minor},
                    "release": self.world.release,
                    "cluster": "fake",
                },
            },
            "errors": reply.errors,
            "warnings": reply.warnings,
        }
        return reply.status, self._dump(payload).encode(), "application/json"

    def _dump(self, value: Any) -> str:
        return json.dumps(value, indent=2) if self._pretty else json.dumps(value, separators=(",", ":"))

    def _dump_list(self, call: Call, key: str, objects: Sequence[Any], write: Callable[[Any, str], Any]) -> bytes:
        """Write a long list, object by object, keeping what has been written before."""
        parts = []
        for value in objects:
            name = (call.version, f"{key} {getattr(value, 'name', '') if key != 'jobs' else value.id}")
            known = self._written.get(name)
            if known is None or known[0] is not value:
                known = self._written[name] = (value, self._dump(write(value, call.version)))
            parts.append(known[1])
        times = {"last_update": encode.moment(self.world.now)}
        if key == "jobs":
            times["last_backfill"] = encode.moment(None)
        rest = self._written_reply(call, Reply(dict(times)))[1].decode()
        return f'{{"{key}":[{",".join(parts)}],{rest.lstrip()[1:]}'.encode()

    def _unchanged_since(self, call: Call, changed: float) -> bool:
        """Whether ``update_time`` is given and nothing has changed since; Slurm counts in whole seconds."""
        given = call.query.get("update_time")
        return given is not None and int(changed) < int(given)

    def _refused_update_time(self, call: Call) -> Reply | None:
        """Refuse ``update_time`` as v0.0.40 and v0.0.41 do."""
        if "update_time" not in call.query or call.version >= "v0.0.42":
            return None
        return Reply(
            status=500,
            errors=[
                error(9202, f"Parsing of {call.query['update_time']} for timestamp failed"),
                error(9000, "Rejecting request. Failure parsing query."),
            ],
        )
