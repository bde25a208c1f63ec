"""Where users come from, and what is reported about it."""

from __future__ import annotations

import subprocess
from pathlib import Path
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
IDS = Path(__file__).resolve().parents[3] / "containers/sssd/ids.pl"
CONF = b"[sssd]\nservices = nss, pam\n[domain/site]\nid_provider = ldap\nmax_id = 9\nldap_default_authtok = hidden\n"


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


HEAD = "[sssd]\nservices = nss\n"
WITHOUT_DAEMONS = "".join(f"(!(uidNumber={number}))" for number in (0, 64030, 65534, 65535))


@pytest.mark.parametrize(
    ("domains", "left"),
    [
        ("[domain/a]\nmax_id = 64029\n", None),
        ("[domain/a]\nmin_id = 65536\n", None),
        ("[domain/a]\nMIN_ID=100000\nmax_id : 200000\n", None),
        ("[domain/a]\nmax_id = 1\nmax_id = 64029\n[nss]\nmax_id = 1\n", None),
        (f"[domain/a]\nldap_user_search_base = dc=a?sub?(&{WITHOUT_DAEMONS})\n", None),
        ("[domain/a]\nid_provider = ad\n", None),
        ("[domain/a]\nid_provider = ldap\nldap_id_mapping = True\n", None),
        ("[domain/a]\nmax_id = 9\n[domain/a/trusted]\nx = 1\n", None),
        ("[domain/a]\n", 64030),
        ("[domain/a]\n# max_id = 64029\n", 64030),
        ("[domain/a]\nmax_id = 0\n", 64030),
        ("[domain/a]\nmax_id = 64030\n", 64030),
        ("[domain/a]\nmin_id = 64031\n", 65534),
        ("[domain/a]\nmin_id = 65535\n", 65535),
        ("[domain/a]\nmin_id = 0\nmax_id = 60000\n", 0),
        ("[domain/a]\nmax_id = many\n", 64030),
        ("[domain/a]\nmax_id = 9\n[domain/b]\n", 64030),
        ("[domain/a]\nid_provider = ad\nldap_id_mapping = false\n", 64030),
        ("[domain/a]\nid_provider = ad\nldap_idmap_range_min = 60000\n", 64030),
        ("[domain/a]\nldap_user_search_base = dc=a?sub?(!(uidNumber=64030))\nmin_id = 1\n", 65534),
    ],
)
def test_nobody_in_a_directory_may_have_the_number_of_a_daemon(domains: str, left: int | None, tmp_path: Path) -> None:
    found = users.trouble_of_sssd(cluster(SSSD), secret(sssd_conf=f"{HEAD}{domains}".encode()))
    conf = tmp_path / "sssd.conf"
    conf.write_text(f"{HEAD}{domains}")
    sidecar = subprocess.run(["perl", str(IDS), str(conf)], capture_output=True, text=True, check=False)
    if left is None:
        assert (found, sidecar.returncode, sidecar.stdout, sidecar.stderr) == (None, 0, "", "")
        return
    words = f"a section [domain/...] lets somebody in the directory have the number {left}, which belongs to a daemon"
    assert found is not None
    assert found.reason is Reason.SECRET_INVALID
    assert words in found.message
    assert (sidecar.returncode, sidecar.stderr) == (1, "")
    assert sidecar.stdout.startswith(words)


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
