"""Public keys of tokens on real daemons of both releases: read, replaced under calls, and what ends a slurmctld.

The reasons why the daemons never read a set that a user wrote (`slurm.tokens.key_set`).
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import httpx
import pytest

from hack.images.rootfs import ensure, ensure_mariadb
from hack.machine.progress import say
from slinky_operator.slurm.tokens import key_set, signing_keys
from slinky_operator.slurm.tokens.signing_keys import SigningKey
from slinky_operator.token import jwts
from tests.support.accounting_host import AccountingHost
from tests.support.mariadb_host import MariadbHost
from tests.support.rsa_keys import rsa_key
from tests.support.slurm_host import SLURM_UID, SlurmHost

pytestmark = pytest.mark.timeout(300)

PATIENCE = 120.0
"""Seconds that slurmctld may take to end on a busy machine."""

A, B, THEIRS = (signing_keys.private(rsa_key(name)) for name in ("a", "b", "theirs"))


def token(key: SigningKey, user: str = "slurm") -> str:
    now = datetime.now(UTC) - timedelta(seconds=5)
    return jwts.make(jwts.Claims(user, now, now + timedelta(hours=1)), key)


def put(host: SlurmHost, text: str) -> None:
    """Replace the file, which nobody reads before a reconfigure."""
    host.write_file(key_set.FILE, text)


def of(*keys: SigningKey) -> str:
    return key_set.render(signing_keys.public_of(one.value) for one in keys)


def status(host: SlurmHost, key: SigningKey, user: str = "slurm", path: str = "slurm/v0.0.42/nodes/") -> int:
    headers = {"X-SLURM-USER-TOKEN": token(key, user)}
    return httpx.get(f"{host.url}/{path}", headers=headers, timeout=60, trust_env=False).status_code


def until(host: SlurmHost, key: SigningKey, *, taken: bool) -> None:
    host.run("scontrol", "reconfigure")
    host.wait_for(lambda: (status(host, key) == 200) is taken, "the set is read")


@pytest.fixture(params=["24.11", "26.05"])
def slurm(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    host = SlurmHost(ensure(request.param))
    name_set(host, "slurm.conf")
    put(host, of(A))
    try:
        host.start()
        yield host
    finally:
        host.close()


def name_set(host: SlurmHost, file: str) -> None:
    """Let a daemon read the set, beside the secret."""
    conf, given = host.configuration / file, "AuthAltParameters=jwt_key=/etc/slurm/jwt.key"
    text = conf.read_text()
    assert given in text
    conf.write_text(text.replace(given, f"{given},jwks=/etc/slurm/{key_set.FILE}"))


@pytest.mark.parametrize("series", ["24.11", "26.05"])
def test_slurmdbd_reads_its_keys_when_it_starts(series: str) -> None:
    with MariadbHost(ensure_mariadb()) as mariadb:
        host = AccountingHost(ensure(series), database=mariadb.database("keys"))
        for file in ("slurm.conf", "slurmdbd.conf"):
            name_set(host, file)

        def give(*keys: SigningKey) -> None:
            put(host, of(*keys))
            # As a Secret is mounted for slurmdbd.
            os.chown(host.configuration / key_set.FILE, 0, SLURM_UID)
            (host.configuration / key_set.FILE).chmod(0o440)

        give(A)
        clusters = "slurmdb/v0.0.42/clusters/"
        with host:
            assert status(host, A, path=clusters) == 200
            assert status(host, SigningKey(host.jwt_key), path=clusters) == 200
            give(A, B)
            until(host, B, taken=True)
            # slurmctld has it, slurmdbd has not: so no token is signed with it before slurmdbd was restarted.
            assert status(host, B, path=clusters) != 200
            host.stop("slurmdbd")
            host.start_slurmdbd()
            assert status(host, B, path=clusters) == 200


class Caller:
    """Calls with a token as long as it runs; the token may be changed meanwhile."""

    def __init__(self, host: SlurmHost, key: SigningKey) -> None:
        self.host, self.token = host, token(key)
        self.answers: list[tuple[int, float]] = []
        """Status and seconds of each call."""
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.wait_for_more()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(60)

    def wait_for_more(self) -> None:
        seen = len(self.answers)
        self.host.wait_for(lambda: len(self.answers) >= seen + 3, "more calls")

    def _run(self) -> None:
        with httpx.Client(base_url=self.host.url, timeout=60, trust_env=False) as http:
            while not self._end.is_set():
                began = time.monotonic()
                answer = http.get("/slurm/v0.0.42/jobs/", headers={"X-SLURM-USER-TOKEN": self.token})
                self.answers.append((answer.status_code, time.monotonic() - began))


def test_a_key_is_added_used_and_dropped_and_no_call_fails(slurm: SlurmHost) -> None:
    secret = SigningKey(slurm.jwt_key)
    with Caller(slurm, A) as caller, Caller(slurm, secret) as other:
        put(slurm, of(A, B))
        until(slurm, B, taken=True)
        caller.token = token(B)
        for one in (caller, other):
            one.wait_for_more()
        put(slurm, of(B))
        until(slurm, A, taken=False)
        for one in (caller, other):
            one.wait_for_more()
    answers = [*caller.answers, *other.answers]
    assert {one for one, _ in answers} == {200}
    say(f"{len(answers)} calls, the slowest took {max(took for _, took in answers):.2f} s")


def test_what_the_operator_makes_of_another_issuers_set_lets_its_users_in(slurm: SlurmHost) -> None:
    public = signing_keys.public_of(THEIRS.value)
    elliptic = {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}
    # As identity providers publish them: no alg, and keys of other kinds. Read as it is, it would end slurmctld.
    given = json.dumps({"keys": [elliptic, {"kty": "RSA", "kid": "2026-11", "n": public.n, "e": public.e}]})
    put(slurm, key_set.render((signing_keys.public_of(A.value), *key_set.read(given))))
    theirs = SigningKey(THEIRS.value, THEIRS.algorithm, "2026-11")
    until(slurm, theirs, taken=True)
    assert status(slurm, theirs, "daemon") == 200
    assert status(slurm, A) == 200
    # The right key under an id that is not in the set.
    assert status(slurm, THEIRS) != 200


def raw(**changes: Any) -> str:
    public = signing_keys.public_of(A.value)
    one = {"kty": "RSA", "alg": "RS256", "kid": "a", "n": public.n, "e": public.e, **changes}
    return json.dumps({"keys": [{key: value for key, value in one.items() if value is not None}]})


@pytest.mark.parametrize("given", [raw(kid=None), raw(n="%%%"), "no JSON"])
def test_a_set_that_is_refused_would_have_ended_slurmctld(slurm: SlurmHost, given: str) -> None:
    with pytest.raises(key_set.UnusableKeySet):
        key_set.read(given)
    put(slurm, given)
    slurm.run("scontrol", "reconfigure", check=False)
    assert slurm.daemons["slurmctld"].process.wait(PATIENCE) != 0
