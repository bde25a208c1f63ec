"""Calls about reservations."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from slurm_client import errors
from slurm_client.connection.answers import ListOf
from slurm_client.decode import resources
from slurm_client.decode.read import mapping, text
from slurm_client.encode import reservations as encode
from slurm_client.operations.base import Listing, Operations, named

if TYPE_CHECKING:
    from slurm_client.models import Reservation, ReservationSpec
    from slurm_client.operations.arguments import Name

__all__ = ["ReservationOperations"]

_RESERVATIONS = ListOf("reservations", resources.reservation)


class ReservationOperations(Operations):
    """List, get, create, update and delete reservations."""

    @overload
    async def reservations(self, *, timeout: float | None = None) -> Listing[Reservation]: ...

    @overload
    async def reservations(
        self, update_time: int | None, *, timeout: float | None = None
    ) -> Listing[Reservation] | None: ...

    async def reservations(
        self, update_time: int | None = None, *, timeout: float | None = None
    ) -> Listing[Reservation] | None:
        """Return all reservations; ``None`` if ``update_time`` is given and nothing has changed since."""
        return await self._list("get_reservations", _RESERVATIONS, update_time=update_time, timeout=timeout)

    async def reservation(self, name: Name, *, timeout: float | None = None) -> Reservation:
        """Return one reservation; NotFound if there is none of that name."""
        found: Reservation = await self._one(
            "get_reservation",
            _RESERVATIONS,
            f"reservation {name}",
            pick=named(name),
            path={"reservation_name": name},
            timeout=timeout,
        )
        return found

    async def create_reservation(self, spec: ReservationSpec, *, timeout: float | None = None) -> str:
        """
        Create a reservation and return its name (v0.0.43 and newer); Conflict if there is one of that name.

        Slurm has one call to create and to change: whether there is one is asked for first, so two callers at the same
        time may both succeed.
        """
        await self._session.require("post_reservation", timeout)
        if spec.name is not None:
            try:
                await self.reservation(spec.name, timeout=timeout)
            except errors.NotFound:
                # The name is free, which is what was asked. Any other error reaches the caller, and nothing is sent.
                pass
            else:
                raise errors.Conflict(f"there is a reservation {spec.name} already; nothing was sent")
        return await self._write_reservation(spec, timeout)

    async def update_reservation(self, spec: ReservationSpec, *, timeout: float | None = None) -> None:
        """Change the reservation named in ``spec`` (v0.0.43 and newer); NotFound if there is none of that name."""
        await self._session.require("post_reservation", timeout)
        if spec.name is None:
            raise errors.InvalidArgument(
                "update_reservation: spec.name is None, which names no reservation; nothing was sent", field="spec.name"
            )
        await self.reservation(spec.name, timeout=timeout)
        await self._write_reservation(spec, timeout)

    async def _write_reservation(self, spec: ReservationSpec, timeout: float | None) -> str:
        answer = await self._session.call("post_reservation", body=encode.reservation(spec), timeout=timeout)
        made = answer.fields.get("reservations")
        first = mapping(made[0]) if isinstance(made, list) and made else {}
        return text(first.get("name")) or spec.name or ""

    async def delete_reservation(self, name: Name, *, timeout: float | None = None) -> None:
        """Delete a reservation; NotFound if there is none."""
        await self._session.call("delete_reservation", path={"reservation_name": name}, timeout=timeout)
