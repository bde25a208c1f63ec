"""The operator's own tokens, signed with one of several keys of which a Slurm may have any."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from typing_extensions import override

from slinky_operator.slurm.tokens.signing_keys import SigningKey
from slurm_client import MintedToken, TokenProvider


class OwnTokens(TokenProvider):
    """Tokens of SlurmUser; where one is refused, the next is signed with the next key.

    Parameters
    ----------
    keys
        At least one, the likeliest first.
    lifetime
        Of a token; it is renewed after half of it.
    """

    def __init__(self, keys: Sequence[SigningKey], lifetime: timedelta) -> None:
        self._signers = [
            MintedToken(one.value, lifetime=lifetime, algorithm=one.algorithm, key_id=one.key_id) for one in keys
        ]
        self._current = 0
        self._last = ""

    @override
    async def token(self) -> str:
        self._last = await self._signers[self._current].token()
        return self._last

    @override
    def invalidate(self, token: str) -> None:
        # Several calls may have been refused with the same token: the key changes once.
        if token == self._last:
            self._signers[self._current].invalidate(token)
            self._current, self._last = (self._current + 1) % len(self._signers), ""
