"""A Secret of keys for logins that is not there, or has no host key, is reported within a minute and no pass fails."""

from __future__ import annotations

from typing import Any, Final

import pytest

from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import SECRETS, Resource
from slinky_operator.nodeset.memory import Memory
from slinky_operator.nodeset.model.ssh_keys import AGAIN, AUTHORIZED_KEYS, HOST_KEYS, MissingKeys
from slinky_operator.nodeset.observation import ssh_secrets
from tests.support import passes
from tests.unit.nodeset.report.test_status import nodeset

SSH: Final = {"authorizedKeysRef": {"name": "people"}, "hostKeysRef": {"name": "hosts"}}
NAMED: Final = ((AUTHORIZED_KEYS, "people"), (HOST_KEYS, "hosts"))


class Secrets:
    """Secrets of one namespace: keys by name, or an error."""

    def __init__(self, **known: tuple[str, ...] | type[errors.KubeError]) -> None:
        self.known = known

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        assert (resource, namespace) == (SECRETS, "ns")
        found = self.known.get(name, errors.NotFound)
        if isinstance(found, tuple):
            return {"data": dict.fromkeys(found, "")}
        raise found(errors.Target("get", "secrets", namespace, name), "no")


def test_a_nodeset_names_those_of_its_fields_and_none_without_logins() -> None:
    assert ssh_secrets.wanted(nodeset(confinement="Constrain", ssh=SSH)) == NAMED
    assert ssh_secrets.wanted(nodeset(confinement="Constrain", ssh={"hostKeysRef": {"name": "h"}})) == (
        (HOST_KEYS, "h"),
    )
    assert ssh_secrets.wanted(nodeset()) == ()


@pytest.mark.parametrize(
    ("secrets", "wanted"),
    [
        (Secrets(people=("alice",), hosts=("ssh_host_rsa_key", "ssh_host_rsa_key.pub")), ()),
        (Secrets(people=(), hosts=("ssh_host_ed25519_key",)), ()),
        (Secrets(hosts=("ssh_host_ed25519_key",)), (MissingKeys(AUTHORIZED_KEYS, "people", is_there=False),)),
        (Secrets(people=()), (MissingKeys(HOST_KEYS, "hosts", is_there=False),)),
        (Secrets(people=(), hosts=("ssh_host_rsa_key.pub",)), (MissingKeys(HOST_KEYS, "hosts", is_there=True),)),
        (Secrets(people=errors.Forbidden), None),
        (Secrets(people=(), hosts=errors.Unavailable), None),
    ],
)
async def test_what_is_missing(secrets: Secrets, wanted: Any) -> None:
    assert await ssh_secrets.missing(secrets, "ns", NAMED) == wanted


def test_it_is_looked_for_once_a_minute_and_no_answer_changes_nothing() -> None:
    memory, lacks = Memory(), (MissingKeys(HOST_KEYS, "hosts", is_there=False),)
    assert not memory.needs_keys((), 0.0)
    assert memory.needs_keys(NAMED, 0.0)
    memory.note_keys(NAMED, lacks, 0.0)
    assert not memory.needs_keys(NAMED, AGAIN - 1)
    assert memory.needs_keys(NAMED, AGAIN)
    memory.note_keys(NAMED, None, AGAIN)
    assert memory.missing_keys == lacks
    # Another name is looked for at once, and says nothing of the one before.
    assert memory.needs_keys(NAMED[:1], AGAIN)
    memory.note_keys(NAMED[:1], None, AGAIN)
    assert not memory.missing_keys


async def test_a_pass_tells_it_and_comes_again_until_it_is_there() -> None:
    async with passes.operator() as operator:
        operator.add("Cluster", {}, name="c")
        operator.add("NodeSet", {"clusterName": "c", "replicas": 0, "confinement": "Constrain", "ssh": SSH})
        result = [await operator.pass_over("NodeSet") for _ in range(3)][-1]
        assert result.requeue_after is not None
        assert result.requeue_after <= AGAIN
        degraded = next(one for one in operator.status("NodeSet")["conditions"] if one["type"] == "Degraded")
        assert "there is no Secret hosts" in degraded["message"]
        assert "there is no Secret people" in degraded["message"]
        assert "SshKeysMissing" in {reason for reason, _ in operator.recorder.told}
