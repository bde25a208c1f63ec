"""What a NodeSet shows when nobody can log in to its nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slinky_operator.nodeset.model.pod_state import Ready
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.model.ssh_keys import AUTHORIZED_KEYS, HOST_KEYS, MissingKeys
from slinky_operator.nodeset.placement.layout import Layout
from slinky_operator.nodeset.planning.decisions import Decisions
from slinky_operator.nodeset.report import ssh, status
from tests.unit.nodeset.report.test_status import NOW, a_pod, nodeset, seen


def snapshot(*, has_contain: bool, **spec: Any) -> Snapshot:
    found = seen(a_pod(0), owner=nodeset(replicas=1, confinement="Constrain", **{"ssh": {}, **spec}))
    return replace(found, cluster=replace(found.cluster, has_contain=has_contain))


def test_a_slurm_conf_without_the_flag_is_told_with_field_and_line_and_the_nodeset_is_ready() -> None:
    of = snapshot(has_contain=False)
    found = status.build(of, Decisions(Layout(1), states={pod.name: Ready() for pod in of.pods}), NOW)
    conditions = {one.type: one for one in found.conditions}
    assert (conditions["Degraded"].reason, conditions["Ready"].status) == ("SshNeedsContain", "True")
    assert "lacks PrologFlags=Contain" in conditions["Degraded"].message
    assert "spec.extraConf" in conditions["Degraded"].message


def test_there_is_nothing_to_tell_with_the_flag_or_without_logins() -> None:
    assert not list(ssh.told(snapshot(has_contain=True)))
    assert not list(ssh.told(snapshot(has_contain=False, ssh=None)))


def test_keys_that_are_missing_are_told_with_field_secret_and_command_and_the_nodeset_is_ready() -> None:
    lacks = (MissingKeys(AUTHORIZED_KEYS, "people", is_there=False), MissingKeys(HOST_KEYS, "hosts", is_there=False))
    of = replace(snapshot(has_contain=True), missing_keys=lacks)
    found = status.build(of, Decisions(Layout(1), states={pod.name: Ready() for pod in of.pods}), NOW)
    conditions = {one.type: one for one in found.conditions}
    assert (conditions["Degraded"].reason, conditions["Ready"].status) == ("SshKeysMissing", "True")
    users, hosts = conditions["Degraded"].message.split("; ", 1)
    assert users.startswith(
        "spec.ssh.authorizedKeysRef: there is no Secret people, so only keys in users' homes and in the directory are "
        "accepted. Create it (kubectl -n ns create secret generic people --from-file=USER=FILE.pub)"
    )
    assert "spec.ssh.hostKeysRef: there is no Secret hosts, so each pod makes a host key when it starts" in hosts
    assert "kubectl -n ns create secret generic hosts --from-file=ssh_host_ed25519_key" in hosts


def test_a_secret_without_a_host_key_is_told_so() -> None:
    lacks = (MissingKeys(HOST_KEYS, "hosts", is_there=True),)
    ((_, text, _, _),) = ssh.told(replace(snapshot(has_contain=True), missing_keys=lacks))
    assert "Secret hosts has no key ssh_host_ed25519_key or the like" in text
    assert "Add one, or change the field" in text
