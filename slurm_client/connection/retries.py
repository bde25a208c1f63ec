"""
What is tried again: how often, how fast, and the two refusals after which a call is repeated in another way.

Which calls may be repeated is decided by :mod:`slurm_client.connection.session`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from slurm_client import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from slurm_client.tokens import TokenProvider

__all__ = ["RefusedToken", "Renewal", "RetryPolicy", "UnknownUrl"]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """
    How often and how fast a call is repeated that may be repeated.

    Parameters
    ----------
    attempts
        Calls in all; 1 repeats nothing.
    first_pause, longest_pause
        Seconds; the pause doubles in between and is drawn at random from its upper half.
    """

    attempts: int = 3
    first_pause: float = 0.1
    longest_pause: float = 2.0

    def pause(self, failed: int, jitter: Callable[[], float]) -> float:
        """Return the seconds to wait after ``failed`` failed attempts."""
        full = min(self.longest_pause, self.first_pause * 2.0 ** (failed - 1))
        return full * (0.5 + 0.5 * jitter())


class RefusedToken(errors.SlurmError):
    """The server refused a token; never leaves the session."""

    def __init__(self, error: errors.Unauthorized, token: str) -> None:
        super().__init__(str(error))
        self.error = error
        self.token = token


class UnknownUrl(errors.NotSupported):
    """The server has no such path; never leaves the session."""

    def __init__(self, request: errors.Request) -> None:
        super().__init__("the server has no such path", request=request, status=404)


class Renewal:
    """One call's right to one new token."""

    def __init__(self, token: TokenProvider) -> None:
        self._token = token
        self._used = False

    async def after(self, refused: RefusedToken) -> None:
        """
        Renew the token after it was refused.

        Raises
        ------
        Unauthorized
            If that has happened before in this call, or there is no other token.
        """
        if self._used:
            raise refused.error from None
        self._used = True
        self._token.invalidate(refused.token)
        if await self._token.token() == refused.token:
            raise refused.error from None
