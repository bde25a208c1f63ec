"""Which slurmrestd, with which token: options that all commands share, made into a client."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slurm_client.sync import SyncSlurmClient
from slurm_client.tokens import FileToken, MintedToken, StaticToken

if TYPE_CHECKING:
    from slurm_client.tokens import TokenProvider

__all__ = ["Connection"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """
    What was said on the command line and in the environment.

    Parameters
    ----------
    urls
        Base URLs of slurmrestds for one cluster.
    socket
        Path of a unix socket.
    token, token_file, jwt_key
        Where tokens are from, the last one given first.
    user
        Whom tokens made with ``jwt_key`` speak for.
    act_for
        User to act for.
    ca
        File of certificates to trust.
    timeout
        Seconds for a call.
    colour
        Whether to print colours.
    """

    urls: tuple[str, ...]
    socket: Path | None = None
    token: str = ""
    token_file: Path | None = None
    jwt_key: Path | None = None
    user: str = "slurm"
    act_for: str | None = None
    ca: Path | None = None
    api_version: str | None = None
    timeout: float = 30.0
    colour: bool = False

    def open(self) -> SyncSlurmClient:
        """Return a client; nothing has been sent yet."""
        return SyncSlurmClient(
            list(self.urls) if self.urls else ["http://localhost" if self.socket else "http://localhost:6820"],
            self._token(),
            api_version=self.api_version,
            timeout=self.timeout,
            user_name=self.act_for,
            ca_bundle=self.ca,
            unix_socket=self.socket,
        )

    def _token(self) -> TokenProvider | None:
        if self.jwt_key is not None:
            return MintedToken(self.jwt_key.read_bytes(), self.user)
        if self.token_file is not None:
            return FileToken(self.token_file)
        # A slurmrestd on a unix socket may know its user by the socket (rest_auth/local).
        return StaticToken(self.token) if self.token or self.socket is None else None
