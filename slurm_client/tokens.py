"""
Where tokens come from.

A token is a JWT that slurmctld accepts: from an administrator, from a file that somebody keeps fresh, from any
callable, or minted here with the cluster's own key. When it is sent, and when a refused one is renewed, is the
session's business.
"""

from __future__ import annotations

import asyncio
import inspect
import random
import time
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from typing_extensions import override

from slurm_client.errors import Unauthorized

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

__all__ = ["CallableToken", "FileToken", "MintedToken", "NoToken", "StaticToken", "TokenProvider"]


@runtime_checkable
class TokenProvider(Protocol):
    """What a client asks for a token before each request."""

    async def token(self) -> str:
        """Return a token to use now; raises :class:`~slurm_client.errors.Unauthorized` if there is none."""
        ...

    def invalidate(self, token: str) -> None:
        """Take note that the server refused this token."""
        ...


class NoToken:
    """No token: a server that knows its users otherwise, such as ``rest_auth/local`` on a unix socket."""

    async def token(self) -> str:
        """Return an empty text: no token is sent."""
        return ""

    def invalidate(self, token: str) -> None:
        """Nothing to be done: there is no other token."""

    @override
    def __repr__(self) -> str:
        return "NoToken()"


class StaticToken:
    """
    One token, which never changes.

    Parameters
    ----------
    token
        The token; the form ``SLURM_JWT=…`` printed by ``scontrol token`` is understood.
    """

    def __init__(self, token: str) -> None:
        self._token = clean(token)

    async def token(self) -> str:
        """Return the token."""
        if not self._token:
            raise Unauthorized("the token is empty")
        return self._token

    def invalidate(self, token: str) -> None:
        """Nothing to be done: there is no other token."""

    @override
    def __repr__(self) -> str:
        return "StaticToken(…)"


class FileToken:
    """
    A token in a file that somebody else keeps fresh.

    The file is read again when its modification time, size or inode has changed, so a mounted Secret works. While it
    cannot be read, the last good token is used, for as long as the server accepts it.

    Parameters
    ----------
    path
        The file; blanks around the token and a leading ``SLURM_JWT=`` are ignored.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._token = ""
        self._seen: tuple[int, int, int] | None = None
        # A file system that hangs holds this thread, and no other part of the program: all requests wait for one read.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="slurm-token")
        self._reading: Future[None] | None = None

    async def token(self) -> str:
        """Return the token in the file; Unauthorized if there is no file and was none."""
        reading = self._reading
        if reading is None or reading.done():
            reading = self._reading = self._thread.submit(self._read)
        try:
            await asyncio.shield(asyncio.wrap_future(reading))
        except (OSError, UnicodeDecodeError) as error:
            if not self._token:
                raise Unauthorized(f"no token in {self.path}: {error}") from error
        if not self._token:
            raise Unauthorized(f"no token in {self.path}: it is empty")
        return self._token

    def invalidate(self, token: str) -> None:
        """Read the file again before the next request."""
        if token == self._token:
            self._seen = self._reading = None

    def _read(self) -> None:
        """Read the file if it has changed; in the thread."""
        status = self.path.stat()
        seen = (status.st_mtime_ns, status.st_size, status.st_ino)
        if seen != self._seen or not self._token:
            self._token, self._seen = clean(self.path.read_text("utf-8")), seen

    @override
    def __repr__(self) -> str:
        return f"FileToken({str(self.path)!r})"


class CallableToken:
    """
    A token from a function, asked again when the server refuses the last one.

    Parameters
    ----------
    function
        Returns a token, or an awaitable of one.
    keep
        For how long an answer may be used again; zero asks before each request.
    clock
        Monotonic seconds.
    """

    def __init__(
        self,
        function: Callable[[], str | Awaitable[str]],
        *,
        keep: timedelta = timedelta(0),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._function = function
        self._keep = keep.total_seconds()
        self._clock = clock
        self._token = ""
        self._until = float("-inf")
        self._lock = asyncio.Lock()

    async def token(self) -> str:
        """Return a token; whatever the function raises becomes Unauthorized."""
        async with self._lock:
            if not self._token or self._clock() >= self._until:
                try:
                    answer = self._function()
                    text = await answer if inspect.isawaitable(answer) else answer
                except Exception as error:
                    raise Unauthorized(f"the token function failed: {error}") from error
                self._token, self._until = clean(text), self._clock() + self._keep
            if not self._token:
                raise Unauthorized("the token function returned an empty token")
            return self._token

    def invalidate(self, token: str) -> None:
        """Ask the function again before the next request."""
        if token == self._token:
            self._until = float("-inf")

    @override
    def __repr__(self) -> str:
        return f"CallableToken({self._function!r})"


class MintedToken:
    """
    Tokens signed here with the cluster's key, renewed at half of their life.

    Parameters
    ----------
    key
        For HS256 the content of ``jwt.key``, for RS256 a private key in PEM form whose public half is in the JWKS.
    user
        Slurm user the tokens speak for (claim ``sun``).
    lifetime
        From minting to expiry.
    algorithm
        ``HS256`` or ``RS256``.
    key_id
        ``kid`` of the header, needed with a JWKS.
    clock
        Seconds since 1970.
    jitter
        Number in [0, 1) that spreads renewals, so that many clients do not renew at once: each renews between 0.45
        and 0.55 of the life.
    others
        Further keys that the server may have instead, while a key is being replaced: where a token is refused, the
        next one is made with the next key.
    """

    def __init__(
        self,
        key: bytes,
        user: str = "slurm",
        lifetime: timedelta = timedelta(hours=1),
        *,
        algorithm: str = "HS256",
        key_id: str = "",
        clock: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
        others: Sequence[bytes] = (),
    ) -> None:
        if lifetime <= timedelta(0):
            raise ValueError("the lifetime of a token must be positive")
        self._keys = (key, *others)
        self._current = 0
        self.user = user
        self.lifetime = lifetime
        self._algorithm = algorithm
        self._headers = {"kid": key_id} if key_id else None
        self._clock = clock
        self._jitter = jitter
        self._token = ""
        self._minted_at = float("-inf")
        self._renew_at = float("-inf")

    async def token(self) -> str:
        """Return a token with at least 0.45 of its life ahead."""
        now = self._clock()
        # A clock that was set back would make the token one of the future, which slurmctld refuses.
        if not self._token or now >= self._renew_at or now < self._minted_at:
            self._token = self._mint(now)
            self._minted_at = now
            self._renew_at = now + self.lifetime.total_seconds() * (0.45 + 0.1 * self._jitter())
        return self._token

    def invalidate(self, token: str) -> None:
        """Mint another one before the next request, with the next key where there are several."""
        if token == self._token:
            self._token = ""
            self._current = (self._current + 1) % len(self._keys)

    def _mint(self, now: float) -> str:
        try:
            import jwt
        except ModuleNotFoundError as error:
            raise Unauthorized(
                "cannot mint a token: PyJWT is not installed; run: pip install 'slurm-rest-client[jwt]'"
            ) from error

        claims = {"sun": self.user, "iat": int(now), "exp": int(now + self.lifetime.total_seconds())}
        try:
            return jwt.encode(claims, self._keys[self._current], algorithm=self._algorithm, headers=self._headers)
        except (jwt.PyJWTError, ValueError, TypeError, NotImplementedError) as error:
            raise Unauthorized(f"cannot mint a token: {error}") from error

    @override
    def __repr__(self) -> str:
        return f"MintedToken(user={self.user!r}, lifetime={self.lifetime!r})"


def clean(text: str) -> str:
    """Return the token in ``text`` without blanks and without the ``SLURM_JWT=`` that ``scontrol token`` prints."""
    return text.strip().removeprefix("SLURM_JWT=").strip()
