from __future__ import annotations

import asyncio
import functools
import os
import threading
from datetime import timedelta
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from slurm_client import CallableToken, FileToken, MintedToken, StaticToken, TokenProvider, errors

KEY = b"k" * 32


async def test_a_token_printed_by_scontrol_is_understood() -> None:
    assert await StaticToken(" SLURM_JWT=abc\n").token() == "abc"
    with pytest.raises(errors.Unauthorized):
        await StaticToken(" ").token()


async def test_a_file_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "token"
    provider = FileToken(path)
    with pytest.raises(errors.Unauthorized):
        await provider.token()
    path.write_text("first\n")
    assert await provider.token() == "first"
    new = tmp_path / "new"
    new.write_text("other")
    os.replace(new, path)  # noqa: PTH105 - as a mounted Secret changes
    assert await provider.token() == "other"


async def test_the_last_good_token_is_used_while_the_file_is_away(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("good")
    provider = FileToken(path)
    assert await provider.token() == "good"
    path.unlink()
    assert await provider.token() == "good"
    path.write_text("better")
    provider.invalidate("good")
    assert await provider.token() == "better"


async def test_a_callable_is_asked_again_after_a_refusal() -> None:
    given = iter(["one", "two", "three"])
    provider = CallableToken(lambda: next(given), keep=timedelta(hours=1))
    assert [await provider.token(), await provider.token()] == ["one", "one"]
    provider.invalidate("something else")
    assert await provider.token() == "one"
    provider.invalidate("one")
    assert await provider.token() == "two"


async def test_a_callable_may_be_asynchronous_and_may_fail() -> None:
    async def fetch() -> str:
        return "fetched"

    def fail() -> str:
        raise OSError("the vault is closed")

    assert await CallableToken(fetch).token() == "fetched"
    with pytest.raises(errors.Unauthorized, match="the vault is closed"):
        await CallableToken(fail).token()
    with pytest.raises(errors.Unauthorized):
        await CallableToken(lambda: "").token()


async def test_a_minted_token_is_renewed_at_half_of_its_life() -> None:
    now = [1_800_000_000.0]
    provider = MintedToken(KEY, "slurm", timedelta(minutes=10), clock=lambda: now[0], jitter=lambda: 0.5)
    first = await provider.token()
    claims = jwt.decode(first, KEY, algorithms=["HS256"], options={"verify_exp": False, "verify_iat": False})
    assert claims == {"sun": "slurm", "iat": 1_800_000_000, "exp": 1_800_000_600}
    now[0] += 299
    assert await provider.token() == first
    now[0] += 2
    second = await provider.token()
    assert second != first
    now[0] -= 3600
    assert await provider.token() not in {first, second}


async def test_renewals_are_spread() -> None:
    for jitter, renewed_at in ((0.0, 0.45), (0.999, 0.5499)):
        now = [1_800_000_000.0]
        clock, draw = functools.partial(now.__getitem__, 0), functools.partial(float, jitter)
        provider = MintedToken(KEY, lifetime=timedelta(seconds=1000), clock=clock, jitter=draw)
        first = await provider.token()
        now[0] += 1000 * renewed_at - 1
        assert await provider.token() == first
        now[0] += 2
        assert await provider.token() != first


async def test_a_refused_token_is_minted_anew() -> None:
    now = [1_800_000_000.0]
    provider = MintedToken(KEY, clock=lambda: now[0])
    first = await provider.token()
    now[0] += 1
    provider.invalidate(first)
    assert await provider.token() != first


async def test_tokens_are_signed_with_an_rsa_key_as_well() -> None:
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    token = await MintedToken(pem, "root", algorithm="RS256", key_id="key-1").token()
    assert jwt.get_unverified_header(token)["kid"] == "key-1"
    assert jwt.decode(token, private.public_key(), algorithms=["RS256"])["sun"] == "root"


async def test_a_useless_key_is_unauthorized() -> None:
    with pytest.raises(errors.Unauthorized, match="cannot mint"):
        await MintedToken(b"no key at all", algorithm="RS256").token()
    with pytest.raises(ValueError, match="positive"):
        MintedToken(KEY, lifetime=timedelta(0))


def test_secrets_are_not_shown() -> None:
    providers: list[TokenProvider] = [StaticToken("secret"), MintedToken(b"secret" * 6)]
    assert all("secret" not in repr(provider) for provider in providers)
    assert all(isinstance(provider, TokenProvider) for provider in providers)


async def test_with_several_keys_a_refused_token_is_followed_by_one_of_the_next_key() -> None:
    other = b"another key, which is as long as it needs to be"
    provider = MintedToken(KEY, others=[other])
    first = await provider.token()
    assert jwt.decode(first, KEY, algorithms=["HS256"])
    provider.invalidate("some other token")
    assert await provider.token() == first
    provider.invalidate(first)
    second = await provider.token()
    assert jwt.decode(second, other, algorithms=["HS256"])
    provider.invalidate(second)
    assert jwt.decode(await provider.token(), KEY, algorithms=["HS256"])


async def test_a_file_system_that_hangs_holds_one_thread_however_many_requests_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("one")
    token, may_end, reads = FileToken(tmp_path / "token"), threading.Event(), []
    real = Path.stat

    def slow(path: Path, **options: bool) -> object:
        reads.append(path)
        assert may_end.wait(60)
        return real(path, **options)

    monkeypatch.setattr(Path, "stat", slow)
    waiting = [asyncio.create_task(token.token()) for _ in range(50)]
    await asyncio.sleep(0)
    given_up, *others = waiting
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    may_end.set()
    assert set(await asyncio.gather(*others)) == {"one"}
    assert len(reads) == 1
