"""Calls about QOS."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from slurm_client import errors, wire
from slurm_client.connection.answers import ListOf
from slurm_client.decode.database import qos as decode
from slurm_client.encode.database import qos as encode
from slurm_client.encode.database.limits import unlike, with_resources
from slurm_client.operations.base import Listing, named
from slurm_client.operations.database.accounts import refuse_unlike
from slurm_client.operations.database.base import DatabaseOperations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slurm_client.models import Qos, QosSpec
    from slurm_client.operations.arguments import Name

__all__ = ["QosOperations"]

_QOS = ListOf("qos", decode.qos)


def _with_minutes() -> tuple[str, ...]:
    """Return the parsers that have the limit of resources times minutes of a whole QOS."""
    return tuple(parser for parser in wire.PARSERS if "total" in wire.fields(parser, "QosLimitsMaxTresMinutes"))


class QosOperations(DatabaseOperations):
    """List, get, create, update and delete QOS."""

    async def qos_list(self, *, timeout: float | None = None) -> Listing[Qos]:
        """Return all QOS."""
        return await self._records("db_get_qos", _QOS, timeout=timeout)

    async def qos(self, name: Name, *, timeout: float | None = None) -> Qos:
        """Return one QOS; NotFound if there is none of that name."""
        # Asked for by name, slurmrestd takes words such as "f" for a truth value and finds nothing.
        found: Qos | None = named(name)(await self.qos_list(timeout=timeout))
        if found is None:
            raise errors.NotFound(f"no QOS {name}")
        return found

    async def create_qos(self, spec: QosSpec, *, timeout: float | None = None) -> None:
        """
        Create a QOS; Conflict if there is one of that name.

        Whether there is one is asked for first, so two callers at the same time may both succeed.
        """
        try:
            await self.qos(spec.name, timeout=timeout)
        except errors.NotFound:
            await self._write_qos(spec, timeout)
        else:
            raise errors.Conflict(f"there is a QOS {spec.name} already; nothing was sent")

    async def update_qos(self, spec: QosSpec, *, timeout: float | None = None) -> None:
        """Change a QOS; NotFound if there is none of that name."""
        found = await self.qos(spec.name, timeout=timeout)
        # slurmrestd takes away flags, modes and limits of resources that are not sent with whatever else is to change.
        flags = sorted(found.flags) if spec.flags is None else spec.flags
        modes = sorted(_modes(found.preempt_modes)) if spec.preempt_modes is None else spec.preempt_modes
        limits = with_resources(spec.limits, found.limits)
        await self._write_qos(replace(spec, flags=flags, preempt_modes=modes, limits=limits), timeout)

    async def delete_qos(self, name: Name, *, timeout: float | None = None) -> None:
        """Delete a QOS; NotFound if there is none of that name. Slurm refuses it for one that jobs use."""
        answer = await self._session.call("db_delete_single_qos", path={"qos": name}, timeout=timeout)
        if answer.not_modified or not answer.fields.get("removed_qos"):
            raise errors.NotFound(f"no QOS {name}", status=answer.status, warnings=answer.warnings)

    async def _write_qos(self, spec: QosSpec, timeout: float | None) -> None:
        if spec.limits is not None and spec.limits.group_tres_minutes is not None:
            version, having = await self._session.negotiate(timeout), _with_minutes()
            if version not in having:
                raise errors.NotSupported(
                    f"data parser {version} has no limits.group_tres_minutes of a QOS; nothing was sent",
                    available_in=having,
                )
        await self._session.call("db_post_qos", body={"qos": [encode.qos(spec)]}, timeout=timeout)
        found = await self.qos(spec.name, timeout=timeout)
        plain = ("description", "priority", "usage_factor", "usage_threshold", "grace_time")
        wrong = [name for name in plain if getattr(spec, name) not in (None, getattr(found, name))]
        for name in ("flags", "preempts", "preempt_modes"):
            wanted = getattr(spec, name)
            if wanted is not None and _modes(wanted) != _modes(getattr(found, name)):
                wrong.append(name)
        if spec.limits is not None:
            wrong += [f"limits.{name}" for name in unlike(spec.limits, found.limits)]
        refuse_unlike(f"QOS {spec.name}", wrong, "resources must be among those that slurmdbd counts")


def _modes(words: Iterable[str]) -> set[str]:
    """Return words without the one that stands for none."""
    return set(words) - {"DISABLED"}
