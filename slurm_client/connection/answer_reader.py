"""
From what was received to an answer or an error, with a memory of the lists that are asked for again and again.

What an answer means is in :mod:`slurm_client.connection.answers`; this module keeps what is read for the next answer
of the same path, within the room that there is for answers.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from slurm_client import errors
from slurm_client.connection import answers
from slurm_client.connection.retries import UnknownUrl

if TYPE_CHECKING:
    from collections.abc import Callable

    from slurm_client.connection.answers import Answer, ListOf
    from slurm_client.connection.intake import Intake
    from slurm_client.connection.transport import Reply

__all__ = ["AnswerReader"]

_log = logging.getLogger("slurm_client")


class AnswerReader:
    """
    Reads the answers of one session.

    Parameters
    ----------
    intake
        Room for answers.
    owner
        On whose behalf they are kept.
    keep_raw
        Whether each model keeps the text that it was read from.
    """

    def __init__(self, intake: Intake, owner: str, *, keep_raw: bool = False) -> None:
        self._intake = intake
        self._owner = owner
        self._keep_raw = keep_raw
        self._known: dict[str, answers.Known] = {}
        """The last answers to what is asked again and again, by path."""

    def forget(self) -> None:
        """Give back the room of all answers that are kept."""
        for path in self._known:
            self._intake.forget(self._owner, (id(self), path))
        self._known.clear()

    async def read(
        self,
        request: errors.Request,
        reply: Reply,
        wanted: ListOf | None,
        tolerate: Callable[[errors.SlurmError], bool] | None,
    ) -> Answer:
        """
        Read one answer.

        Parameters
        ----------
        request
            What was asked.
        reply
            What was received.
        wanted
            The list in the answer that is to be decoded.
        tolerate
            Errors inside a readable answer, whatever its status, for which this is true are left to the caller.

        Raises
        ------
        UnknownUrl
            If the server has no such path.
        SlurmError
            The error that the answer is, or that it cannot be read.
        """
        status, beginning = reply.status, reply.text.beginning
        if answers.is_unknown_url(beginning, status):
            raise UnknownUrl(request)
        good = 200 <= status < 300
        if status in {204, 304} and not beginning.strip():
            return answers.Answer(status)
        try:
            answer = await answers.read(
                reply.text,
                status,
                request,
                wanted if good else None,
                self._known.get(request.path),
                room=2 * self._intake.answer,
                keep_raw=self._keep_raw,
            )
        except errors.DecodeError as error:
            if good:
                foreign = answers.foreign_page(beginning, status, reply.content_type, request)
                if foreign is not None and not isinstance(error, errors.TooLarge):
                    raise foreign from error
                raise
            raise answers.error_from_text(beginning, status, reply.content_type, request) from error
        if answer.recurring is not None:
            before = self._known.pop(request.path, None)
            self._intake.keep(self._owner, (id(self), request.path), answer.weight)
            self._known[request.path] = answer.recurring
            if before is not None:
                await before.clear()
        found = answers.error_in(answer, request)
        if found is not None and not (tolerate is not None and tolerate(found)):
            raise found
        for warning in answer.warnings:
            _log.debug("%s: %s", request, warning)
        return answer
