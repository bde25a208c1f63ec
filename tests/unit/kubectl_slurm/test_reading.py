"""What a Secret with a key set holds is shown if it can be, and ends no screen if it cannot."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from kubectl_slurm.facts import reading


def secret(text: str) -> dict[str, Any]:
    value = base64.b64encode(text.encode()).decode()
    return {"metadata": {"name": "slurm-auth-slurm"}, "data": {"slurm.jwks": value}}


def key_set(end: Any) -> str:
    return json.dumps({"keys": [{"kid": "a", "exp": end}]})


def test_the_end_of_a_key_is_read() -> None:
    (key,) = reading.keys(secret(key_set(86_400)))
    assert key.expires == datetime(1970, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", [key_set(10**30), key_set(-1), key_set("soon"), "[" * 100_000, "{", '{"keys": 5}', "[]"]
)
def test_what_cannot_be_read_is_left_out(text: str) -> None:
    assert reading.keys(secret(text)) == ()


def test_keys_are_those_of_the_site_where_the_spec_names_them() -> None:
    about = {"metadata": {"name": "slurm", "namespace": "ns"}}
    assert reading.cluster(about).key_secrets == ("slurm-auth-slurm", "slurm-auth-jwt")
    named = {**about, "spec": {"auth": {"slurmKeyRef": {"name": "ours", "key": "slurm.jwks"}}}}
    assert reading.cluster(named).key_secrets == ("ours", "slurm-auth-jwt")
