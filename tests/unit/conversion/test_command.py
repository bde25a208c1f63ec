"""The command as people call it: what it prints where, its exit statuses, and input that it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.packaging.render import SLURM_CHART, render
from slinky_operator import cli
from slinky_operator.conversion import documents
from tests.unit.conversion.schemas import errors

LOSSLESS = "nodesets: {gpu: {replicas: 2, slurmd: {image: {repository: r, tag: '1'}}}}\n"


class Call:
    """One call: its exit status, and what it has printed."""

    def __init__(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = tmp_path, capsys

    def __call__(self, *texts: str, options: tuple[str, ...] = ()) -> tuple[int, str, str]:
        arguments = ["convert", *options]
        for number, text in enumerate(texts):
            path = self.folder / f"{number}.yaml"
            path.write_text(text, encoding="utf-8")
            arguments += ["-f", str(path)]
        status = cli.main(arguments)
        printed = self.capsys.readouterr()
        return status, printed.out, printed.err.replace(f"{self.folder}/", "")


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    return Call(tmp_path, capsys)


def test_nothing_lost_is_0_and_something_lost_is_3(call: Call) -> None:
    assert call(LOSSLESS)[0] == 0
    status, out, err = call(LOSSLESS + "namespaceOverride: a\n")
    assert status == 3
    assert yaml.safe_load(out)["nodesets"]["gpu"]["image"] == "r:1"
    assert "lost (1):\n  namespaceOverride: " in err


def test_objects_beside_the_release_and_switches_for_developers_are_kept(call: Call) -> None:
    objects = [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}, "kind: {{ .Values.x }}"]
    given = yaml.safe_dump({"nodesets": {"gpu": {}}, "extraObjects": objects, "debug": {"enabled": True}})
    status, out, _ = call(given)
    ours = yaml.safe_load(out)
    assert (status, ours["extraObjects"], ours["debug"]) == (0, objects, {"enable": True})
    status, out, err = call(given, options=("--kinds",))
    assert [one["kind"] for one in yaml.safe_load_all(out)] == ["Cluster", "NodeSet", "Secret"]
    assert status == 3
    assert "extraObjects[1]: : a text, perhaps of a template" in err


def test_what_was_off_is_not_missed_and_what_was_on_is(call: Call) -> None:
    assert call(LOSSLESS + "vendor: {nvidia: {dcgm: {enabled: false}}}\n")[0] == 0
    status, _, err = call(LOSSLESS + "vendor: {nvidia: {dcgm: {enabled: true}}}\n")
    assert status == 3
    assert "It was in effect." in err


def test_the_report_names_old_and_new(call: Call) -> None:
    _, _, err = call("controller: {persistence: {storageClass: fast, size: 4Gi}}\ncompute: {nodesets: []}\n")
    assert "  controller.persistence.storageClass -> cluster.controller.persistence.storageClassName: fast\n" in err
    assert "values of Slinky's chart slurm, 0.1 to 0.3" in err


def test_json(call: Call) -> None:
    status, out, err = call(LOSSLESS, options=("-o", "json"))
    report = json.loads(err)
    assert status == 0
    assert json.loads(out)["nodesets"] == {"gpu": {"replicas": 2, "image": "r:1"}}
    assert report["kept"] == [
        {"key": "nodesets.gpu.replicas", "value": "2", "to": "nodesets.gpu.replicas", "newValue": "2"}
    ]
    assert report["lossless"]
    assert {one["about"] for one in report["defaults"]} > {"nodesets.gpu.resources", "images"}


def test_later_files_take_precedence_and_that_is_told(call: Call) -> None:
    status, out, err = call(LOSSLESS, "nodesets: {gpu: {replicas: 3}}\n")
    assert status == 0
    assert yaml.safe_load(out)["nodesets"]["gpu"] == {"replicas": 3, "image": "r:1"}
    assert "overridden (1):\n  nodesets.gpu.replicas" in err


def test_passwords_are_not_shown(call: Call) -> None:
    external = {"enabled": True, "host": "db", "user": "u", "password": "hunter2"}
    sssd = "[domain/a]\nldap_default_authtok = hunter2\n"
    given = {
        "accounting": {"external": external},
        "compute": {},
        "slurm": {"extraSlurmdbdConf": {"StoragePass": "hunter2"}},
    }
    status, _, err = call(yaml.safe_dump(given))
    assert status == 3
    assert "hunter2" not in err
    assert "hunter2" not in call(yaml.safe_dump({"sssd": {"conf": sssd}}))[2]


def test_values_of_the_operators_chart(call: Call) -> None:
    status, out, err = call(
        "operator: {logLevel: debug, namespaces: 'a, b', nodesetWorkers: 4}\nwebhook: {enabled: true}\n"
    )
    assert status == 0
    assert yaml.safe_load(out) == {
        "log": {"level": "DEBUG"},
        "watchNamespaces": ["a", "b"],
        "workers": {"nodesets": 4},
        "slinkyNamespaces": ["slinky"],
    }
    assert "webhook: " in err
    # What both charts have needs to be told.
    assert call("priorityClassName: a\n")[0] == 2
    assert (
        yaml.safe_load(call("priorityClassName: a\n", options=("--chart", "slurm-operator"))[1])["priorityClassName"]
        == "a"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "0.yaml: empty"),
        ("[1]\n", "0.yaml: a document must be a map, not a list"),
        ("a: [\n", "0.yaml, line 2: "),
        ("a: 1\na: 2\n", "0.yaml, line 2: the key 'a' is there twice"),
        ("{a: 1}: 2\n", "a key must be a text"),
        ("a: &a [*a]\n", "stands for itself"),
        ("a: !!python/object:os.system {}\n", "could not determine a constructor"),
        ("a: {b: 1}\n", "neither values of Slinky's charts nor objects of its kinds (it has a)"),
        ("cluster: {}\n", "values of this operator's chart already"),
        (
            "operator: {}\nnodesets: {}\n",
            "nodesets is a value of the chart slurm, operator of the chart slurm-operator",
        ),
        ("nodesets: {gpu: {replicas: many}}\n", "0.yaml: nodesets.gpu.replicas: a whole number is needed, not a text"),
        ("nodesets: [gpu]\n", "0.yaml: nodesets: a map is needed, not a list"),
        ("compute: {nodesets: [{replicas: 1}]}\n", "0.yaml: compute.nodesets[0]: a map with a name is needed"),
        ("controller: {podSpec: [a]}\n", "0.yaml: controller.podSpec: a map is needed, not a list"),
        ("controller: 1\n", "0.yaml: controller: a map is needed, not a number"),
        ("controller: {external: true, externalConfig: 3}\n", "0.yaml: controller.externalConfig: a map is needed"),
        ("accounting: {enabled: maybe}\n", "0.yaml: accounting.enabled: true or false is needed, not a text"),
        ("nodesetDefaults: 3\nnodesets: {a: {}}\n", "0.yaml: nodesetDefaults: a map is needed, not a number"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n", "no object is of a kind of Slinky (there is Secret)"),
        ("apiVersion: v1\nkind: Secret\n---\nnodesets: {}\n", "objects and values together"),
        ("apiVersion: slinky.slurm.net/v1beta1\nkind: NodeSet\nspec: {}\n", "NodeSet: metadata.name is needed"),
        (
            "apiVersion: slinky.slurm.net/v1beta1\nkind: NodeSet\nmetadata: {name: a}\nspec: [1]\n",
            "spec: a map is needed",
        ),
    ],
)
def test_input_that_is_refused_in_one_line(call: Call, text: str, said: str) -> None:
    status, out, err = call(text)
    assert status == 2
    assert out == ""
    assert said in err
    assert err.startswith("slurm-operator convert: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: " + "[" * 70 + "]" * 70, "deeper than 60 levels"),
        ("a: 1\n---\n" * 1001, "more than 1000 documents"),
        (
            "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
            + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(8)),
            "more than 200000 keys and values, with what anchors stand for",
        ),
        (
            "a: &a {k: 1}\n"
            + "".join(f"m{n}: &m{n} {{<<: [{','.join([f'*m{n - 1}' if n else '*a'] * 20)}]}}\n" for n in range(9)),
            "more than 200000 keys and values",
        ),
        ("# " + "x" * documents.MAX_BYTES, "all inputs together have more than 4 MiB"),
    ],
    ids=["depth", "documents", "anchors", "merges", "bytes"],
)
def test_bounds(call: Call, text: str, said: str) -> None:
    status, _, err = call(text)
    assert (status, said in err) == (2, True)


def test_a_file_that_is_missing_or_no_text(call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["convert", "-f", str(tmp_path / "none")]) == 2
    assert "No such file" in capsys.readouterr().err
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert cli.main(["convert", "-f", str(tmp_path / "binary")]) == 2
    assert "no UTF-8 text" in capsys.readouterr().err


def test_stdin_without_the_operators_imports() -> None:
    program = (
        "import sys\nfrom slinky_operator.cli import main\nstatus = main(['convert', '-f', '-'])\n"
        "heavy = {'kopf', 'kubernetes', 'aiohttp', 'httpx', 'pydantic', 'slinky_operator.app'} & set(sys.modules)\n"
        "sys.exit(100 if heavy else status)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        input=f"USER-SUPPLIED VALUES:\n{LOSSLESS}",
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert yaml.safe_load(run.stdout)["nodesets"]["gpu"]["replicas"] == 2


def test_help_has_examples_and_statuses(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["convert", "--help"])
    shown = capsys.readouterr().out
    assert "slurm-operator convert -f values.yaml > ours.yaml" in shown
    assert "exit status:" in shown


CONTROLLER: dict[str, Any] = {
    "apiVersion": "slinky.slurm.net/v1beta1",
    "kind": "Controller",
    "metadata": {
        "name": "slurm",
        "namespace": "hpc",
        "labels": {"helm.sh/chart": "slurm-1.1.0", "team": "a"},
        "uid": "1",
    },
    "spec": {
        "clusterName": "hpc_slurm",
        "slurmKeyRef": {"name": "slurm-auth-slurm", "key": "slurm.key"},
        "jwtHs256KeyRef": {"name": "slurm-auth-jwt", "key": "jwt_hs256.key"},
        "slurmctld": {"image": "r/slurmctld:1", "resources": {}},
        "accountingRef": {"name": "slurm"},
        "persistence": {"enabled": True, "resources": {"requests": {"storage": "4Gi"}}},
        "template": {
            "metadata": {"labels": {"helm.sh/chart": "slurm-1.1.0"}},
            "spec": {"nodeSelector": {"a": "b"}, "priorityClassName": ""},
        },
    },
    "status": {},
}
OTHERS: list[dict[str, Any]] = [
    {
        "kind": "RestApi",
        "spec": {"controllerRef": {"name": "slurm"}, "replicas": 2, "slurmrestd": {"image": "r/slurmrestd:1"}},
    },
    {"kind": "Accounting", "spec": {"storageConfig": {"host": "db"}, "slurmKeyRef": {"name": "a", "key": "b"}}},
    {
        "kind": "NodeSet",
        "metadata": {"name": "slurm-worker-gpu"},
        "spec": {
            "controllerRef": {"name": "slurm"},
            "replicas": 3,
            "slurmd": {"image": "r/slurmd:1", "args": ["-vv"]},
            "extraConf": "Gres=gpu:8 Weight=5",
            "partition": {"enabled": True, "config": "Default=YES\n"},
            "template": {"spec": {"hostname": "gpu-", "tolerations": [{"operator": "Exists"}]}},
            "pruneSlurmNodeRecords": "Never",
        },
    },
    {
        "kind": "LoginSet",
        "metadata": {"name": "slurm-login"},
        "spec": {"controllerRef": {"name": "slurm"}, "replicas": 1},
    },
    {
        "kind": "Token",
        "metadata": {"name": "ci"},
        "spec": {"jwtHs256KeyRef": {"name": "slurm-auth-jwt", "key": "k"}, "username": "ci"},
    },
]


def stream() -> str:
    """A Controller with what belongs to it, in an order that is not ours, and a Secret."""
    others = [
        {
            "apiVersion": "slinky.slurm.net/v1beta1",
            **one,
            "metadata": {"name": "slurm", "namespace": "hpc", **one.get("metadata", {})},
        }
        for one in OTHERS
    ]
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "slurm-auth-slurm"},
        "data": {"slurm.key": "c2VjcmV0"},
    }
    return yaml.safe_dump_all([secret, *others, CONTROLLER])


def test_kinds_of_1_x_become_one_cluster(call: Call) -> None:
    status, out, err = call(stream(), options=("--kinds",))
    cluster, nodeset, token = yaml.safe_load_all(out)
    assert [found for one in (cluster, nodeset, token) for found in errors(one)] == []
    spec = cluster["spec"]
    assert cluster["metadata"] == {"name": "slurm", "namespace": "hpc"}
    assert spec["controller"] == {
        "image": "r/slurmctld:1",
        "persistence": {"enabled": True, "size": "4Gi"},
        "template": {"spec": {"nodeSelector": {"a": "b"}}},
    }
    assert spec["accounting"]["database"]["host"] == "db"
    assert spec["restapi"] == {"replicas": 2, "image": "r/slurmrestd:1"}
    assert spec["login"] == [{"name": "login", "replicas": 1}]
    assert nodeset["metadata"]["name"] == "gpu"
    assert nodeset["spec"]["clusterName"] == "slurm"
    assert (nodeset["spec"]["gres"], nodeset["spec"]["weight"]) == ("gpu:8", 5)
    assert token["spec"] == {"clusterRef": {"name": "slurm"}, "username": "ci"}
    assert status == 3
    assert "Controller/slurm.metadata.labels.team: a: put it on the converted object" in err
    assert "Secret/slurm-auth-slurm" in err
    assert "c2VjcmV0" not in out + err


def test_lines_about_partitions_become_partitions(call: Call) -> None:
    lines = "Foo=bar\nPartitionName=all Nodes=ALL Default=YES State=UP\nPartitionName=b Nodes=elsewhere State=UP"
    spec = {**CONTROLLER["spec"], "extraConf": lines}
    status, out, err = call(yaml.safe_dump({**CONTROLLER, "metadata": {"name": "slurm"}, "spec": spec}))
    cluster = yaml.safe_load(out)["cluster"]
    assert status == 0
    assert cluster["extraConf"] == "Foo=bar\nPartitionName=b Nodes=elsewhere State=UP"
    assert cluster["partitions"] == [{"name": "all-nodes", "nodeSets": ["ALL"], "config": "Default=YES State=UP"}]
    assert "a line of the partition all; here: cluster.partitions[all-nodes]" in err


def test_the_same_as_values_has_tokens_too(call: Call) -> None:
    status, out, err = call(stream())
    ours = yaml.safe_load(out)
    assert (status, ours["clusterName"]) == (call(stream(), options=("--kinds",))[0], "slurm")
    assert ours["tokens"]["ci"]["username"] == "ci"
    assert "Token/ci.spec.username -> tokens.ci.username: ci" in err
    objects = {one["kind"]: one for one in render(SLURM_CHART, ours, namespace="hpc")}
    assert objects["Token"]["spec"]["clusterRef"] == {"name": "slurm"}
    assert errors(objects["Token"]) == []


def test_a_list_of_node_sets_as_kubectl_prints_it(call: Call) -> None:
    item = {**OTHERS[2], "apiVersion": "slinky.slurm.net/v1beta1"}
    status, out, _ = call(
        yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [item]}), options=("--kinds", "-n", "a")
    )
    assert status == 0
    assert [one["metadata"] for one in yaml.safe_load_all(out)] == [
        {"name": "slurm", "namespace": "a"},
        {"name": "gpu", "namespace": "a"},
    ]


def test_kinds_of_0_x_are_kept(call: Call) -> None:
    cluster = {"apiVersion": "slinky.slurm.net/v1alpha1", "kind": "Cluster", "metadata": {"name": "slurm"}}
    cluster["spec"] = {"server": "http://slurm-restapi:6820", "token": {"secretRef": "slurm-token"}}
    nodeset = {"apiVersion": "slinky.slurm.net/v1alpha1", "kind": "NodeSet", "metadata": {"name": "debug"}}
    nodeset["spec"] = {"clusterName": "slurm", "replicas": 1, "template": {"spec": {"hostname": "debug-"}}}
    status, out, err = call(yaml.safe_dump_all([nodeset, cluster]), options=("--kinds",))
    assert status == 0
    assert list(yaml.safe_load_all(out)) == [
        {**cluster, "metadata": {"name": "slurm"}},
        {**nodeset, "metadata": {"name": "debug"}},
    ]
    assert "0 lost" in err


def test_several_clusters_need_manifests(call: Call) -> None:
    two = [{**CONTROLLER, "metadata": {"name": name}} for name in ("a", "b")]
    status, _, err = call(yaml.safe_dump_all(two))
    assert status == 2
    assert "several Clusters (/a, /b) do not fit into one values file: use --kinds" in err
    assert len(list(yaml.safe_load_all(call(yaml.safe_dump_all(two), options=("--kinds",))[1]))) == 2


def test_slurmctld_elsewhere(call: Call) -> None:
    status, out, err = call(
        "controller: {external: true, externalConfig: {host: ctl.example.com, port: 6817}, extraConf: a}\n"
        "restapi: {replicas: 2}\nloginsets: {a: {enabled: true}}\nnodesets: {gpu: {replicas: 1}}\n"
    )
    assert status == 3
    assert yaml.safe_load(out)["cluster"] == {
        "server": "http://ctl.example.com:6820",
        "controller": {"external": {"host": "ctl.example.com", "port": 6817}},
    }
    assert "controller.extraConf: a: slurmctld runs elsewhere" in err
    assert "restapi.replicas: 2: the operator runs none of it" in err
    assert yaml.safe_load(out)["loginsets"]["a"]["replicas"] == 1


def test_a_controller_elsewhere_is_lost_as_its_value_is(call: Call) -> None:
    api = "apiVersion: slinky.slurm.net/v1beta1\n"
    status, out, err = call(
        f"{api}kind: Controller\nmetadata: {{name: c, namespace: n}}\n"
        "spec: {external: true, externalConfig: {host: ctl, port: 6817}, extraConf: a, accountingRef: {name: d}}\n"
        f"---\n{api}kind: LoginSet\nmetadata: {{name: l, namespace: n}}\n"
        "spec: {controllerRef: {name: c}, replicas: 2}\n"
        f"---\n{api}kind: Accounting\nmetadata: {{name: d, namespace: n}}\nspec: {{storageConfig: {{host: db}}}}\n",
        options=("--kinds",),
    )
    assert status == 3
    cluster, logins = yaml.safe_load_all(out)
    assert cluster["spec"] == {
        "server": "http://ctl:6820",
        "controller": {"external": {"host": "ctl", "port": 6817}},
    }
    assert logins["spec"] == {"clusterName": "c", "replicas": 2}
    said = "the operator needs a slurmrestd beside that slurmctld"
    assert f"Controller/c.spec.external: true: {said}" in err
    assert f"controller.external: true: {said}" in call("controller: {external: true}\n")[2]
    assert "Controller/c.spec.externalConfig.host -> cluster.controller.external.host: ctl" in err
    assert "Accounting/d.spec: " in err


def test_slurmdbd_elsewhere(call: Call) -> None:
    given = "accounting: {enabled: true, external: true, externalConfig: {host: dbd}, slurmdbd: {image: {tag: '1'}}}\n"
    status, out, _ = call(given)
    assert status == 0
    assert yaml.safe_load(out)["cluster"]["accounting"] == {"enabled": True, "external": {"host": "dbd"}}


def test_defaults_of_several_node_sets(call: Call) -> None:
    _, out, err = call(
        "nodesetDefaults: {replicas: 4, slurmd: {image: {tag: '26.05'}}, podSpec: {tolerations: [{key: a}]}}\n"
        "nodesets: {gpu: {podSpec: {nodeSelector: {a: b}}}, cpu: {replicas: 1, slurmd: {}}, all: null}\n"
    )
    nodesets = yaml.safe_load(out)["nodesets"]
    assert nodesets["gpu"]["replicas"] == 4
    assert nodesets["gpu"]["template"]["spec"] == {"tolerations": [{"key": "a"}], "nodeSelector": {"a": "b"}}
    assert nodesets["cpu"]["image"] == "ghcr.io/slinkyproject/slurmd:26.05"
    assert nodesets["all-nodes"]["replicas"] == 4
    assert "  nodesets.cpu.slurmd: {} (empty)\n" in err
    assert "  nodesetDefaults.replicas -> nodesets.*.replicas: 4\n" in err


def test_without_compiled_parts_of_the_library_the_result_is_the_same() -> None:
    """As in the plugin in one file."""
    site = Path(__file__).parent / "sites" / "hyperpod.yaml"
    program = "import sys; from slinky_operator.conversion.command import main; sys.exit(main(sys.argv[1:]))"
    plain = f"import sys; sys.modules['yaml._yaml'] = None; {program}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = [
        subprocess.run([sys.executable, "-c", one, "-f", str(site)], capture_output=True, text=True, env=environment)  # noqa: PLW1510 - its exit code is compared
        for one in (program, plain)
    ]
    assert found[0].returncode == found[1].returncode == 3
    assert found[0].stdout == found[1].stdout
    assert found[0].stderr == found[1].stderr
