"""Login pods follow their spec; what is missing or refused changes nothing in running ones, but their number."""

from __future__ import annotations

import pytest

from slinky_api import labels
from slinky_operator.kube.resources import CLUSTERS, DEPLOYMENTS, LOGINSETS, PODS, SERVICES
from slinky_operator.loginset.trial import ANNOTATION_CONFIG
from tests.unit.loginset.builders import KEY, World, keys

ED25519, RSA = ("ssh_host_ed25519_key", "ssh_host_rsa_key")
PORT = {"port": 2200, "nodePort": 30022, "appProtocol": "ssh"}


async def test_a_set_becomes_a_deployment_behind_a_service() -> None:
    world = World(replicas=2, service={"spec": {"type": "NodePort", "ports": [PORT]}})
    await world.settle()
    deployment, service = world.child("deployments"), world.child("services")
    pod = deployment["spec"]["template"]["spec"]
    assert deployment["spec"]["replicas"] == 2
    assert [one["name"] for one in pod["initContainers"]] == ["sackd"]
    assert "slurm-controller-0.slurm-controller.ns.svc:6817" in pod["initContainers"][0]["command"]
    assert service["spec"]["ports"] == [{**PORT, "name": "ssh", "targetPort": 2222, "protocol": "TCP"}]
    assert service["spec"]["selector"].items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    assert world.status["hostKeys"][0].startswith("SHA256:")
    assert world.condition("SshdConfigApplied")["status"] == "True"


@pytest.mark.parametrize(
    ("service", "host_name"),
    [(None, "front-login"), ({"type": "NodePort"}, "front-login"), ({"clusterIP": "None"}, None)],
)
async def test_slurmctld_can_look_up_the_host_of_an_srun_and_never_finds_another_pod(
    service: dict[str, str] | None, host_name: str | None
) -> None:
    world = World(**({} if service is None else {"service": {"spec": service}}))
    await world.settle()
    assert world.child("deployments")["spec"]["template"]["spec"].get("hostname") == host_name


async def test_only_sackd_has_the_key_and_may_write_its_socket() -> None:
    world = World()
    await world.settle()
    pod = world.child("deployments")["spec"]["template"]["spec"]
    (sackd,), (login,) = pod["initContainers"], pod["containers"]
    assert "slurm-key" in {one["name"] for one in sackd["volumeMounts"]}
    assert "slurm-key" not in {one["name"] for one in login["volumeMounts"]}
    assert next(one for one in login["volumeMounts"] if one["name"] == "run-slurm")["readOnly"]
    assert "fsGroup" not in pod["securityContext"]


async def test_a_second_pass_writes_nothing() -> None:
    world = World()
    await world.settle()
    before = dict(world.kube.objects)
    await world.step()
    assert world.kube.objects == before


async def test_host_keys_are_generated_once() -> None:
    world = World()
    del world.kube.objects["secrets", "ns", "front-ssh-host-keys"]
    await world.settle()
    made = world.child("secrets", "front-ssh-host-keys")
    assert made["data"].keys() == {ED25519, f"{ED25519}.pub", RSA, f"{RSA}.pub"}
    await world.settle()
    assert world.child("secrets", "front-ssh-host-keys") == made


async def test_lost_host_keys_are_not_replaced_until_somebody_says_so() -> None:
    world = World()
    await world.settle()
    known = world.status["hostKeys"][0]
    del world.kube.objects["secrets", "ns", "front-ssh-host-keys"]
    await world.step()
    assert not world.has("secrets", "front-ssh-host-keys")
    assert world.condition("Degraded")["reason"] == "HostKeysLost"
    assert known in world.condition("Degraded")["message"]
    loginset = world.kube.objects["loginsets", *KEY]
    about = {**loginset["metadata"], "annotations": {labels.ANNOTATION_NEW_HOST_KEYS: known}}
    world.kube.put(LOGINSETS, {**loginset, "metadata": about})
    await world.settle()
    assert world.has("secrets", "front-ssh-host-keys")
    assert known not in world.status["hostKeys"]


async def test_a_refused_line_is_named_and_changes_no_running_pod() -> None:
    world = World()
    await world.settle()
    before = world.child("deployments"), world.child("configmaps")
    world.change(extraSshdConfig="MaxSessions 5\nNonsense yes\n")
    await world.step()
    (trial,) = world.trials()
    text = trial["metadata"]["annotations"][ANNOTATION_CONFIG].splitlines()
    number = text.index("Nonsense yes") + 1
    await world.settle(f"/etc/slurm-login/config/sshd_config: line {number}: Bad configuration option: Nonsense\n")
    assert (world.child("deployments"), world.child("configmaps")) == before
    told = world.condition("SshdConfigApplied")
    assert told["reason"] == "SshdConfigRefused"
    assert "line 2 (Nonsense yes): Bad configuration option: Nonsense" in told["message"]
    assert world.events.told[-1][0] == "SshdConfigRefused"
    # The same text is not tried again, and the set can be scaled meanwhile.
    assert len(world.trials()) == 1
    world.change(extraSshdConfig="MaxSessions 5\nNonsense yes\n", replicas=3)
    await world.step()
    assert world.child("deployments")["spec"]["replicas"] == 3


async def test_an_accepted_line_reaches_the_config_map_and_replaces_no_pod() -> None:
    world = World()
    await world.settle()
    template = world.child("deployments")["spec"]["template"]
    world.change(extraSshdConfig="MaxSessions 5")
    await world.step()
    assert "MaxSessions" not in world.child("configmaps")["data"]["sshd_config"]
    await world.settle()
    assert "MaxSessions 5" in world.child("configmaps")["data"]["sshd_config"]
    assert world.child("deployments")["spec"]["template"] == template
    assert world.trials() == []


async def test_no_text_of_the_users_is_in_a_command() -> None:
    world = World(extraSshdConfig="Banner $(touch /tmp/x)", rootSshAuthorizedKeys="ssh-ed25519 $(id)")
    await world.step()
    (trial,) = world.trials()
    assert "touch" not in str(trial["spec"])
    await world.settle()
    assert "touch" not in str(world.child("deployments")["spec"])
    assert "$(id)" not in str(world.child("deployments")["spec"])


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"spec": {"shareProcessNamespace": True}}, "spec.template.spec.shareProcessNamespace"),
        ({"spec": {"terminationGracePeriodSeconds": 5}}, "spec.template.spec.terminationGracePeriodSeconds"),
        ({"spec": {"initContainers": [{"name": "sackd", "command": ["sh"]}]}}, "spec.template.spec.initContainers"),
        ({"spec": {"containers": [{"name": "login", "command": ["sh"]}]}}, "spec.template.spec.containers[login]"),
        ({"metadata": {"labels": {labels.LABEL_LOGINSET_NAME: "x"}}}, "spec.template.metadata.labels"),
    ],
)
async def test_a_template_that_would_break_the_pods_is_refused_by_field(spec: object, field: str) -> None:
    world = World(template=spec)
    await world.settle()
    assert not world.has("deployments")
    assert field in world.condition("Degraded")["message"]


async def test_what_is_missing_is_named() -> None:
    world = World(authorizedKeysRef={"name": "people"}, sshHostKeysRef={"name": "own"})
    await world.settle()
    assert "spec.sshHostKeysRef: there is no Secret own" in world.condition("Degraded")["message"]
    assert "spec.authorizedKeysRef: there is no Secret people" in world.condition("Degraded")["message"]
    world.secret("people", {"user": b"ssh-ed25519 AAAA"})
    world.secret("own", {ED25519: keys()[ED25519]})
    await world.settle()
    assert world.has("deployments")
    assert f"HostKey /etc/slurm-login/host-keys/{ED25519}" in world.child("configmaps")["data"]["sshd_config"]
    assert RSA not in world.child("configmaps")["data"]["sshd_config"]


async def test_a_key_that_is_none_is_refused() -> None:
    world = World(sshHostKeysRef={"name": "own"})
    world.secret("own", {RSA: b"nonsense"})
    await world.settle()
    assert world.condition("Degraded")["reason"] == "SecretInvalid"
    assert "nonsense" not in world.condition("Degraded")["message"]


async def test_without_its_cluster_a_set_keeps_its_pods_and_can_be_scaled() -> None:
    world = World()
    await world.settle()
    await world.kube.delete(CLUSTERS, "slurm", "ns")
    world.change(replicas=0)
    await world.step()
    assert world.condition("Ready")["reason"] == "ClusterNotFound"
    assert world.child("deployments")["spec"]["replicas"] == 0


async def test_an_external_slurm_needs_its_address_and_key() -> None:
    world = World({"server": "http://there:6820", "token": {"secretRef": "token"}})
    await world.settle()
    assert world.condition("Ready")["reason"] == "ClusterUnsuitable"
    assert "auth.slurmKeyRef and controller.external" in world.condition("Ready")["message"]
    spec = {
        "server": "http://there:6820",
        "token": {"secretRef": "token"},
        "auth": {"slurmKeyRef": {"name": "key"}},
        "controller": {"external": {"host": "ctld.there"}},
    }
    cluster = world.kube.objects["clusters", "ns", "slurm"]
    world.kube.put(CLUSTERS, {**cluster, "spec": spec, "status": {}})
    world.secret("key", {"slurm.key": b"k" * 32})
    await world.settle()
    sackd = world.child("deployments")["spec"]["template"]["spec"]["initContainers"][0]
    assert "ctld.there:6817" in sackd["command"]


async def test_pods_mount_the_accepted_key_and_those_of_an_earlier_operator_stay() -> None:
    world = World({"auth": {"slurmKeyRef": {"name": "site", "key": "slurm.jwks"}}})
    world.secret("site", {"slurm.jwks": b"{}"})
    await world.settle()
    assert not world.has("deployments")
    words = "key slurm.jwks of Secret slurm-auth-accepted, the key of auth/slurm of Cluster slurm, does not exist yet"
    assert words in world.condition("Ready")["message"]
    world.secret("slurm-auth-accepted", {"slurm.jwks": b"{}"})
    await world.settle()
    made = world.child("deployments")
    (volume,) = (one for one in made["spec"]["template"]["spec"]["volumes"] if one["name"] == "slurm-key")
    assert volume["secret"]["secretName"] == "slurm-auth-accepted"
    # Sessions of an earlier operator's pods go on.
    volume["secret"]["secretName"] = "site"
    before = world.kube.put(DEPLOYMENTS, made)
    await world.settle()
    assert world.child("deployments") == before


async def test_pods_wait_for_the_first_configuration_of_the_cluster() -> None:
    world = World()
    cluster = world.kube.objects["clusters", "ns", "slurm"]
    world.kube.put(CLUSTERS, {**cluster, "status": {}})
    await world.settle()
    assert not world.has("deployments")
    assert world.condition("Ready")["reason"] == "ClusterNotReady"
    assert world.condition("Degraded")["status"] == "False"


async def test_an_object_of_somebody_else_is_left_as_it_is() -> None:
    world = World()
    foreign = world.kube.put(SERVICES, {"metadata": {"name": "front-login", "namespace": "ns"}, "spec": {}})
    await world.settle()
    assert world.child("services") == foreign
    assert world.condition("Degraded")["reason"] == "NameConflict"
    assert not world.has("deployments")


async def test_sshd_asks_sssd_for_keys_where_users_come_from_it() -> None:
    world = World({"identity": {"sssd": {"confRef": {"name": "directory"}}}})
    await world.settle()
    assert "sss_ssh_authorizedkeys" in world.child("configmaps")["data"]["sshd_config"]


def image(world: World) -> str:
    (login,) = world.child("deployments")["spec"]["template"]["spec"]["containers"]
    return str(login["image"])


@pytest.mark.parametrize(
    ("default", "slurmctld", "used"),
    [
        ("slinky/login:27.05.0", "27.05.0", "slinky/login:26.05.5"),
        ("slinky/login:26.05.6", "26.05.6", "slinky/login:26.05.6"),
        # It waits until slurmctld runs that release: commands must not be newer.
        ("slinky/login:26.05.6", "26.05.5", "slinky/login:26.05.5"),
        ("slinky/login:26.05.6", "", "slinky/login:26.05.5"),
        ("slinky/login:26.05.4", "26.05.6", "slinky/login:26.05.5"),
        ("elsewhere/login:26.05.6", "26.05.6", "slinky/login:26.05.5"),
    ],
)
async def test_pods_follow_patch_releases_of_slurmctld_and_no_other_default(
    default: str, slurmctld: str, used: str
) -> None:
    world = World()
    world.defaults("slinky/login:26.05.5")
    await world.settle()
    cluster = world.kube.objects["clusters", "ns", "slurm"]
    world.kube.put(CLUSTERS, {**cluster, "status": {**cluster["status"], "slurmVersion": slurmctld}})
    world.defaults(default)
    await world.settle()
    assert image(world) == used


async def test_an_image_that_a_spec_has_named_follows_nothing() -> None:
    world = World(image="slinky/login:26.05.5")
    await world.settle()
    cluster = world.kube.objects["clusters", "ns", "slurm"]
    world.kube.put(CLUSTERS, {**cluster, "status": {**cluster["status"], "slurmVersion": "26.05.6"}})
    world.defaults("slinky/login:26.05.6")
    await world.settle()
    assert image(world) == "slinky/login:26.05.5"


async def test_the_first_image_is_not_newer_than_that_of_the_clusters_nodes() -> None:
    world = World()
    cluster = world.kube.objects["clusters", "ns", "slurm"]
    status = {**cluster["status"], "slurmdImage": "elsewhere/slurmd:24.11"}
    world.kube.put(CLUSTERS, {**cluster, "status": status})
    await world.settle()
    assert image(world) == "slinky/login:24.11"


async def test_a_trial_that_was_lost_is_repeated() -> None:
    world = World()
    await world.step()
    (trial,) = world.trials()
    world.kube.put(PODS, {**trial, "status": {"phase": "Failed", "reason": "Evicted"}})
    await world.step()
    assert world.trials() == []
    await world.settle()
    assert world.has("deployments")


async def test_the_grace_time_is_bounded_and_longer_than_the_note() -> None:
    world = World(sessionGracePeriod="2h")
    await world.settle()
    pod = world.child("deployments")["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 7230
    assert pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][-1] == "7200"


async def test_the_users_of_the_cluster_are_those_of_sackd_and_of_sessions() -> None:
    world = World({"identity": {"sssd": {"confRef": {"name": "directory"}}, "homes": {"claimName": "homes"}}})
    await world.settle()
    pod = world.child("deployments")["spec"]["template"]["spec"]
    # Sidecars start in order: users first.
    assert [one["name"] for one in pod["initContainers"]] == ["sssd", "sackd"]
    for container in (pod["initContainers"][1], *pod["containers"]):
        assert "identity-sockets" in {one["name"] for one in container["volumeMounts"]}
    assert "/home" in {one["mountPath"] for one in pod["containers"][0]["volumeMounts"]}
    assert "/home" not in {one["mountPath"] for one in pod["initContainers"][1]["volumeMounts"]}


async def test_a_login_makes_a_missing_home_where_the_cluster_wants_it() -> None:
    homes = {"claimName": "homes", "mountPath": "/people"}
    passwd = {"passwd": {"configMapRef": {"name": "people"}}}
    world = World({"identity": {**passwd, "homes": homes}})
    await world.settle()
    pod = world.child("deployments")["spec"]["template"]["spec"]
    assert [one["name"] for one in pod["initContainers"]] == ["sackd", "pam"]
    mounts = {one["mountPath"]: one for one in pod["containers"][0]["volumeMounts"]}
    # Users work beside these files, and sshd does what is in them as root.
    assert mounts["/etc/pam.d"]["readOnly"] is True
    assert "/people" not in {one["mountPath"] for one in pod["initContainers"][1]["volumeMounts"]}
    data = world.child("configmaps")["data"]
    assert 'perl - "/people"' in data["make-home.sh"]
    for switched_off in ({**passwd, "homes": {**homes, "create": False}}, {"homes": homes}):
        world = World({"identity": switched_off})
        await world.settle()
        pod = world.child("deployments")["spec"]["template"]["spec"]
        assert [one["name"] for one in pod["initContainers"]] == ["sackd"]
        # Pods made before still have the program, and it does nothing.
        assert 'perl - ""' in world.child("configmaps")["data"]["make-home.sh"]


async def test_login_pods_of_an_earlier_operator_stay_until_homes_create_is_set() -> None:
    """Without the field the digest of what pods depend on is that of before: no session ends for a new default."""
    passwd, claim = {"configMapRef": {"name": "people"}}, {"claimName": "homes"}

    async def digest(**homes: bool) -> str:
        world = World({"identity": {"passwd": passwd, "homes": {**claim, **homes}}})
        await world.settle()
        notes: dict[str, str] = world.child("deployments")["metadata"]["annotations"]
        return notes["loginset.slinky.slurm.net/inputs"]

    assert len({await digest(), await digest(create=True), await digest(create=False)}) == 3
