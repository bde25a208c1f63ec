"""Calls about reservations."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from slurm_client import errors, wire
from slurm_client.connection.answers import ListOf
from slurm_client.decode import resources
from slurm_client.decode.read import mapping, text
from slurm_client.encode import reservations as encode
from slurm_client.encode.values import fitted
from slurm_client.operations import reservation_results
from slurm_client.operations.base import Listing, Operations, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slurm_client.connection.answers import Answer
    from slurm_client.models import Reservation, ReservationResult, ReservationSpec
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
        await self._check_flags([spec], timeout)
        answer = await self._session.call("post_reservation", body=encode.reservation(spec), timeout=timeout)
        made = answer.fields.get("reservations")
        first = mapping(made[0]) if isinstance(made, list) and made else {}
        return text(first.get("name")) or spec.name or ""

    async def create_reservations(
        self, specs: Iterable[ReservationSpec], *, timeout: float | None = None
    ) -> tuple[ReservationResult, ...]:
        """
        Create many reservations in one call (v0.0.43 and newer), and return what became of each in order.

        Slurm goes through all of them, whatever becomes of one. Which there are already is asked for first: those are
        refused with ESLURM_RESERVATION_NAME_DUP and not sent. Where slurmctld does not say whom an error is about, the
        list is asked for once more.

        Parameters
        ----------
        specs
            Each with a name of its own. Nothing is sent for none.
        """
        return await self._write_many(list(specs), new=True, timeout=timeout)

    async def update_reservations(
        self, specs: Iterable[ReservationSpec], *, timeout: float | None = None
    ) -> tuple[ReservationResult, ...]:
        """
        Change many reservations in one call (v0.0.43 and newer), and return what became of each in order.

        As :meth:`create_reservations`; one that there is not is refused with ESLURM_RESERVATION_INVALID and not sent.
        """
        return await self._write_many(list(specs), new=False, timeout=timeout)

    async def _write_many(
        self, specs: Sequence[ReservationSpec], *, new: bool, timeout: float | None
    ) -> tuple[ReservationResult, ...]:
        call = "create_reservations" if new else "update_reservations"
        names = reservation_results.names_of(specs, call)
        version = await self._session.negotiate(timeout)
        wire.endpoint(version, "post_reservations")
        await self._check_flags(specs, timeout)
        bodies = [fitted(version, "ReservationDescMsg", encode.reservation(spec)) for spec in specs]
        if not specs:
            return ()
        known = await self._names(timeout)
        sent = [index for index, name in enumerate(names) if (name in known) is not new]
        outcome = reservation_results.ReservationResults(names, sent, new=new)
        if sent:
            answer = await self._session.call(
                "post_reservations",
                body={"reservations": [bodies[index] for index in sent]},
                timeout=timeout,
                tolerate=reservation_results.of_each,
            )
            await self._attribute(outcome, answer, timeout)
        return outcome.results()

    async def _attribute(
        self, outcome: reservation_results.ReservationResults, answer: Answer, timeout: float | None
    ) -> None:
        """Find whom the errors of a bulk call are about; raise what it is where that cannot be found."""
        if outcome.note(answer):
            return
        if not outcome.new:
            self._session.refuse(answer, "post_reservations")
        try:
            there = await self._names(timeout)
        except errors.SlurmError:
            # What went wrong is said by the answer; that it cannot be told apart is the lesser part.
            self._session.refuse(answer, "post_reservations")
            raise
        if not outcome.note_missing(there):
            self._session.refuse(answer, "post_reservations")

    async def _names(self, timeout: float | None) -> frozenset[str]:
        return frozenset(each.name for each in await self.reservations(timeout=timeout))

    async def _check_flags(self, specs: Iterable[ReservationSpec], timeout: float | None) -> None:
        """Refuse words that slurmrestd would complain about and leave out."""
        known = wire.words(await self._session.negotiate(timeout), "ReservationDescMsgFlagsItem")
        unknown = next((word for spec in specs for word in spec.flags or () if word.upper() not in known), None)
        if known and unknown is not None:
            raise errors.InvalidArgument(
                f"{unknown!r:.40} is no flag of reservations that the data parser knows, and Slurm would leave it out; "
                "nothing was sent (``other`` is passed on unchecked)",
                field="flags",
            )

    async def delete_reservation(self, name: Name, *, timeout: float | None = None) -> None:
        """Delete a reservation; NotFound if there is none."""
        await self._session.call("delete_reservation", path={"reservation_name": name}, timeout=timeout)
