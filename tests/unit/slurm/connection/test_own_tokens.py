"""The operator's own tokens: the likeliest key first, the next one where a token is refused."""

from __future__ import annotations

from datetime import timedelta

from slinky_operator.slurm.connection.own_tokens import OwnTokens
from slinky_operator.slurm.tokens import signing_keys
from slinky_operator.slurm.tokens.signing_keys import SigningKey
from tests.support.rsa_keys import rsa_key

KEYS = (signing_keys.private(rsa_key("a")), SigningKey(b"k" * 32))


async def test_each_refusal_brings_a_token_of_the_next_key() -> None:
    tokens = OwnTokens(KEYS, timedelta(minutes=5))
    for key in (*KEYS, *KEYS):
        token = await tokens.token()
        assert signing_keys.verify(token, key)["sun"] == "slurm"
        assert await tokens.token() == token
        # Several calls may be refused at once, with the same token.
        for _ in range(3):
            tokens.invalidate(token)
