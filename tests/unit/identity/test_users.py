"""Where users come from, and what is reported about it."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.identity import users
from slinky_operator.reconcile.secrets import Source
from slinky_operator.slurm.conf import TextSource
from tests.unit.cluster.world import cluster_object

PASSWD = {"passwd": {"configMapRef": {"name": "people"}}}
SSSD = {"sssd": {"confRef": {"name": "directory"}}}
CONF = b"[sssd]\nservices = nss, pam\n[domain/site]\nid_provider = ldap\nldap_default_authtok = hidden\n"


def cluster(identity: dict[str, Any] | None) -> Cluster:
    return Cluster.parse(cluster_object({} if identity is None else {"identity": identity}))


def of(source: TextSource | None) -> users.Users:
    return users.users(cluster(PASSWD), {} if source is None else {"people": source})


def secret(**data: bytes) -> dict[str, Source]:
    return {"directory": Source("directory", 0.0, exists=True, data={k.replace("_", "."): v for k, v in data.items()})}


def test_only_what_is_asked_for_is_read() -> None:
    for one in (None, {}, {"homes": {"claimName": "homes"}}):
        spec = cluster(one).spec.identity
        assert (users.config_maps(spec), users.secrets(spec)) == ((), ())
        assert users.users(cluster(one), {}) == users.Users()
        assert users.trouble_of_sssd(cluster(one), {}) is None
    assert users.config_maps(cluster(PASSWD).spec.identity) == ("people",)
    assert users.secrets(cluster(SSSD).spec.identity) == ("directory",)


def test_users_and_groups_are_those_of_the_config_map_and_groups_may_be_missing() -> None:
    found = of(TextSource("people", exists=True, texts={"passwd": "a:x:1000:1000::/home/a:/bin/sh"}))
    assert found == users.Users({"passwd": "a:*:1000:1000::/home/a:/bin/sh\n", "group": ""})


@pytest.mark.parametrize(
    ("source", "reason", "words"),
    [
        (None, Reason.CONFIG_SOURCE_NOT_FOUND, "there is no ConfigMap people"),
        (TextSource("people", exists=False), Reason.CONFIG_SOURCE_NOT_FOUND, "there is no ConfigMap people"),
        (TextSource("people", exists=True, refused="has 99 keys"), Reason.IDENTITY_REFUSED, "people has 99 keys"),
        (TextSource("people", exists=True), Reason.IDENTITY_REFUSED, "people has no key passwd"),
        (
            TextSource("people", exists=True, texts={"passwd": ""}, not_text=("group",)),
            Reason.IDENTITY_REFUSED,
            "people has a key group that is not text in UTF-8",
        ),
        (
            TextSource("people", exists=True, texts={"passwd": "x" * 900_001}),
            Reason.IDENTITY_REFUSED,
            "has 900001 bytes of passwd and group, and may have 900000",
        ),
        (
            TextSource("people", exists=True, texts={"passwd": "\nroot:x:0:0::/:/bin/sh"}),
            Reason.IDENTITY_REFUSED,
            "people: passwd line 2: user root is in the images already",
        ),
    ],
)
def test_a_faulty_source_leaves_the_users_as_they_are(source: TextSource | None, reason: Reason, words: str) -> None:
    found = of(source)
    assert found.texts is None
    assert found.trouble is not None
    assert found.trouble.reason is reason
    assert words in found.trouble.message
    assert found.trouble.message.startswith("spec.identity.passwd.configMapRef: ")
    assert found.trouble.message.endswith("The daemons keep the users they have")


def test_a_configuration_that_sssd_can_read_is_no_trouble() -> None:
    assert users.trouble_of_sssd(cluster(SSSD), secret(sssd_conf=CONF)) is None
    other = {"sssd": {"confRef": {"name": "directory", "key": "mine.conf"}}}
    assert users.trouble_of_sssd(cluster(other), secret(mine_conf=CONF)) is None


@pytest.mark.parametrize(
    ("sources", "reason", "words"),
    [
        (
            {"directory": Source("directory", 0.0, exists=False)},
            Reason.SECRET_NOT_FOUND,
            "there is no Secret directory",
        ),
        (secret(), Reason.SECRET_KEY_NOT_FOUND, "Secret directory has no key sssd.conf"),
        (secret(sssd_conf=b"\xff"), Reason.SECRET_INVALID, "is not a configuration of SSSD"),
        (secret(sssd_conf=b"hidden = 1"), Reason.SECRET_INVALID, "is not a configuration of SSSD"),
        (secret(sssd_conf=b"[a]\n"), Reason.SECRET_INVALID, "has no section [sssd]"),
        (secret(sssd_conf=b"[sssd]\nservices\n"), Reason.SECRET_INVALID, "does not name nss in [sssd] services"),
        (secret(sssd_conf=b"[sssd]\nservices = nss\n"), Reason.SECRET_INVALID, "has no section [domain/...]"),
        (secret(sssd_conf=CONF + b"#" * 300_000), Reason.SECRET_INVALID, "and may have 262144"),
    ],
)
def test_what_is_wrong_with_a_configuration_is_said_without_a_word_of_it(
    sources: dict[str, Source], reason: Reason, words: str
) -> None:
    found = users.trouble_of_sssd(cluster(SSSD), sources)
    assert found is not None
    assert found.reason is reason
    assert words in found.message
    assert found.message.startswith("spec.identity.sssd.confRef: ")
    assert "hidden" not in found.message
