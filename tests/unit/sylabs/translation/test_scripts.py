"""Scripts that run images, in real shells: each program gets the user's texts as they are, and the folder goes."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slinky_api.sylabs import wlm
from slinky_operator.jobs.images.runtimes import Runtime
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.sylabs.translation.site import Site
from slinky_operator.sylabs.translation.slurmjob import translate
from slurm_client.notation import sbatch

SHELLS = ("bash", "sh")
NOBODY = 65534

RECORDER = """#!/bin/sh
{ printf '%s\\0' "$#" "${0##*/}" "$@"; } >> "$RECORDS/calls"
"""
"""What every stand-in does first: it writes down the number of its arguments, its name and its arguments."""

PROGRAMS: Mapping[str, str] = {
    "apptainer": 'case "$1" in pull) : > "$2";; build) mkdir -p "$3/locked/in"; chmod 500 "$3/locked";; esac\n'
    '[ "$1" = "$FAIL" ] && exit 7\n[ "$1" = run ] && [ -n "$KILL" ] && kill -TERM "$PPID"\nexit 0\n',
    "srun": 'while case "$1" in --*) true;; *) false;; esac; do shift; done\nexec "$@"\n',
    "skopeo": '[ skopeo = "$FAIL" ] && exit 7\nmkdir -p "${6#oci:}" 2>/dev/null\nexit 0\n',
    "umoci": 'mkdir -p "$5/rootfs/locked/in"; chmod 500 "$5/rootfs/locked"; : > "$5/config.json"\n',
    "jq": '[ -n "$IMAGE_COMMAND" ] || exit 4\nprintf "%s\\n" "$IMAGE_COMMAND"\n',
    "image-program": 'exit "${EXIT:-0}"\n',
}


COMMAND = '.process.args | select(type == "array" and length > 0) | @sh'


@dataclass
class Node:
    """A folder with stand-ins for the programs of a node, and what they were called with."""

    folder: Path
    shell: str
    user: int | None = None

    @property
    def images(self) -> Path:
        return self.folder / "images"

    def run(self, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a script as slurmd would, with an empty record."""
        (self.folder / "calls").write_bytes(b"")
        (self.folder / "calls").chmod(0o666)
        (self.folder / "script").write_text(script)
        return subprocess.run(
            [self.shell, str(self.folder / "script")],
            env={
                "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
                "RECORDS": str(self.folder),
                "SLURM_JOB_ID": "42",
                "SLURM_JOB_NUM_NODES": "2",
                "SLURM_CONF": str(self.folder / "slurm.conf"),
                "IMAGE_COMMAND": "image-program",
                "FAIL": "",
                "KILL": "",
                **environment,
            },
            cwd=self.folder,
            user=self.user,
            capture_output=True,
            text=True,
            check=False,
        )

    def calls(self) -> list[list[str]]:
        """Name and arguments of each call."""
        words = (self.folder / "calls").read_bytes().decode("utf-8", "surrogateescape").split("\0")
        calls = []
        while len(words) > 1:
            end = int(words[0]) + 2
            calls.append(words[1:end])
            words = words[end:]
        return calls


@pytest.fixture(params=SHELLS)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Node:
    return filled(Node(tmp_path, request.param))


def filled(node: Node) -> Node:
    """Put the stand-ins where the node looks for programs."""
    (node.folder / "bin").mkdir()
    for name, text in PROGRAMS.items():
        program = node.folder / "bin" / name
        program.write_text(RECORDER + text)
        program.chmod(0o755)
    node.images.mkdir()
    (node.folder / "oci.conf").touch()
    return node


@pytest.fixture(params=SHELLS)
def users_node(request: pytest.FixtureRequest) -> Iterator[Node]:
    """A node on which jobs run as somebody who is not root."""
    with tempfile.TemporaryDirectory() as name:
        node = filled(Node(Path(name), request.param, None if os.getuid() else NOBODY))
        if node.user is not None:
            for path in (node.folder, node.images):
                os.chown(path, node.user, node.user)
        yield node


def script(node: Node, runtime: Runtime, **spec: Any) -> str:
    site = Site(runtime=runtime, folder=str(node.images), is_folder_shared=True)
    found = translate(wlm.WlmJobSpec.model_validate(spec), site).spec.script
    assert found is not None
    return found


def step(*words: str, cpus: int = 0) -> list[str]:
    asked = [f"--cpus-per-task={cpus}"] if cpus else []
    return ["srun", "--nodes=2", "--ntasks-per-node=1", *asked, *words]


# Apptainer


def test_an_image_is_pulled_verified_and_run_once_on_each_node(node: Node) -> None:
    text = script(node, Runtime.APPTAINER, image="library://a/b", resources={"nodes": 2, "cpuPerNode": 4})
    done = node.run(text)
    file = f"{node.images}/wlmjob-42-0/image.sif"
    assert (done.returncode, done.stderr) == (0, "")
    assert node.calls() == [
        ["apptainer", "pull", file, "library://a/b"],
        ["apptainer", "verify", file],
        step("apptainer", "run", file, cpus=4),
        ["apptainer", "run", file],
    ]
    assert list(node.images.iterdir()) == []


OPTIONS: list[tuple[dict[str, Any], list[str]]] = [
    ({"cleanEnv": True}, ["--cleanenv"]),
    ({"fakeRoot": True}, ["--fakeroot"]),
    ({"ipc": True}, ["--ipc"]),
    ({"pid": True}, ["--pid"]),
    ({"noPrivs": True}, ["--no-privs"]),
    ({"app": "main"}, ["--app=main"]),
    ({"hostName": "box"}, ["--hostname=box"]),
    ({"binds": ["/a:/b:ro", "/c,/d"]}, ["--bind=/a:/b:ro", "--bind=/c,/d"]),
    (dict.fromkeys(("cleanEnv", "fakeRoot", "ipc", "pid", "noPrivs"), False), []),
]


@pytest.mark.parametrize(("options", "words"), OPTIONS)
def test_an_option_is_the_one_of_apptainer(node: Node, options: dict[str, Any], words: list[str]) -> None:
    assert node.run(script(node, Runtime.APPTAINER, image="docker://a", options=options)).returncode == 0
    assert node.calls()[-1] == ["apptainer", "run", *words, f"{node.images}/wlmjob-42-0/image.sif"]


@pytest.mark.parametrize(
    ("image", "allowed", "verified"),
    [
        ("docker://a", False, False),
        ("library://a", False, True),
        ("library://a", True, False),
        ("oras://a", False, True),
        ("https://a/b.sif", False, True),
        ("local.file/a.sif", False, True),
        ("local.file/a.sif", True, False),
    ],
)
def test_a_signature_is_verified_where_there_can_be_one(node: Node, image: str, allowed: bool, verified: bool) -> None:
    node.run(script(node, Runtime.APPTAINER, image=image, options={"allowUnsigned": allowed}))
    assert any(call[1] == "verify" for call in node.calls()) == verified


@pytest.mark.parametrize(("image", "path"), [("local.file/a b.sif", "/a b.sif"), ("local.file--x", "./--x")])
def test_a_file_on_the_nodes_runs_where_it_is(node: Node, image: str, path: str) -> None:
    text = script(node, Runtime.APPTAINER, image=image)
    assert "folder" not in text
    assert node.run(text).returncode == 0
    assert node.calls() == [
        ["apptainer", "verify", path],
        step("apptainer", "run", path),
        ["apptainer", "run", path],
    ]


@pytest.mark.parametrize("image", ["docker://a", "local.file/a.sif"])
def test_what_is_written_to_is_a_copy_that_goes_with_the_job(node: Node, image: str) -> None:
    done = node.run(script(node, Runtime.APPTAINER, image=image, options={"writable": True, "allowUnsigned": True}))
    tree = f"{node.images}/wlmjob-42-0/tree"
    file = "/a.sif" if image.startswith("local") else f"{node.images}/wlmjob-42-0/image.sif"
    assert (done.returncode, done.stderr) == (0, "")
    assert node.calls()[-3:] == [
        ["apptainer", "build", "--sandbox", tree, file],
        step("apptainer", "run", "--writable", tree),
        ["apptainer", "run", "--writable", tree],
    ]
    assert list(node.images.iterdir()) == []


@pytest.mark.parametrize("command", ["pull", "verify", "run"])
def test_what_fails_ends_the_job_with_its_exit_code_and_without_its_folder(node: Node, command: str) -> None:
    done = node.run(script(node, Runtime.APPTAINER, image="library://a"), FAIL=command)
    assert done.returncode == 7
    assert node.calls()[-1][1] == command
    assert list(node.images.iterdir()) == []


@pytest.mark.parametrize("runtime", [Runtime.APPTAINER, Runtime.SLURM])
def test_an_image_with_folders_that_nobody_may_write_to_is_removed_all_the_same(
    users_node: Node, runtime: Runtime
) -> None:
    options = {"writable": True} if runtime is Runtime.APPTAINER else {}
    done = users_node.run(script(users_node, runtime, image="docker://a", options=options))
    assert (done.returncode, done.stderr) == (0, "")
    assert list(users_node.images.iterdir()) == []


def test_a_signal_ends_the_job_without_its_folder(node: Node) -> None:
    # The stand-in of srun becomes the one of apptainer, so that the parent of that is the script.
    done = node.run(script(node, Runtime.APPTAINER, image="docker://a"), KILL="yes")
    assert done.returncode == 143
    assert list(node.images.iterdir()) == []


@pytest.mark.parametrize("when", ["chmod", "rm"])
@pytest.mark.parametrize("ends", ["itself", "by a signal", "by an error"])
def test_a_signal_while_the_folder_is_removed_leaves_nothing(node: Node, when: str, ends: str) -> None:
    """Slurm signals all processes of a batch step, and may do so twice."""
    program = node.folder / "bin" / when
    program.write_text(f'#!/bin/sh\nkill -TERM "$PPID" $$\nPATH="${{PATH#*:}}" exec {when} "$@"\n')
    program.chmod(0o755)
    text = script(node, Runtime.APPTAINER, image="docker://a")
    done = node.run(text, KILL="yes" if ends == "by a signal" else "", FAIL="run" if ends == "by an error" else "")
    assert done.returncode == {"itself": 0, "by a signal": 143, "by an error": 7}[ends]
    assert list(node.images.iterdir()) == []


def test_a_folder_that_is_there_before_is_neither_used_nor_removed(node: Node) -> None:
    others = node.images / "wlmjob-42-0"
    others.mkdir()
    text = script(node, Runtime.APPTAINER, image="docker://a")
    assert node.run(text).returncode != 0
    assert node.calls() == []
    assert others.is_dir()
    assert node.run(text, SLURM_RESTART_COUNT="1").returncode == 0
    assert list(node.images.iterdir()) == [others]


LINES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).map(
    lambda text: "".join("_" if ord(each) < 32 or ord(each) == 127 else each for each in text)
)
HOSTILE = st.sampled_from(
    ["$(touch x)", "`id`", "'; touch x; '", "'\"'\"'", "\\", "a'\\''b", "-n", "*", "~", "#SBATCH --uid=0"]
)
TEXTS = LINES | HOSTILE | st.lists(LINES | HOSTILE, min_size=1, max_size=3).map("".join)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(image=TEXTS, app=TEXTS, host=TEXTS, binds=st.lists(TEXTS, max_size=3))
def test_no_text_of_the_user_is_read_by_the_shell(
    node: Node, image: str, app: str, host: str, binds: list[str]
) -> None:
    options = {"app": app, "hostName": host, "binds": binds}
    text = script(node, Runtime.APPTAINER, image=f"library://{image}", options=options)
    before = {path.name for path in node.folder.iterdir()}
    done = node.run(text)
    file = f"{node.images}/wlmjob-42-0/image.sif"
    words = ["run", f"--app={app}", f"--hostname={host}", *(f"--bind={bind}" for bind in binds), file]
    assert (done.returncode, done.stderr) == (0, "")
    assert node.calls() == [
        ["apptainer", "pull", file, f"library://{image}"],
        ["apptainer", "verify", file],
        step("apptainer", *words),
        ["apptainer", *words],
    ]
    assert {path.name for path in node.folder.iterdir()} - before <= {"calls", "script"}
    assert sbatch.directives(text) == ()


@pytest.mark.parametrize(
    "image", ["lolcow", "ubuntu:22.04", "http://a/b.sif", "shub://a", "://", "local.file", "--nv", "DOCKER://a"]
)
def test_an_image_whose_origin_is_not_said_is_refused(node: Node, image: str) -> None:
    with pytest.raises(InvalidJob) as refused:
        script(node, Runtime.APPTAINER, image=image)
    assert refused.value.field == "spec.image"


# srun --container


def test_an_image_becomes_a_bundle_that_runs_once_on_each_node(node: Node) -> None:
    text = script(node, Runtime.SLURM, image="docker://a/b:1", resources={"nodes": 2, "cpuPerNode": 4})
    done = node.run(text, IMAGE_COMMAND="image-program 'a b' '$HOME' 'it'\\''s'")
    folder = f"{node.images}/wlmjob-42-0"
    command = ["image-program", "a b", "$HOME", "it's"]
    assert (done.returncode, done.stderr) == (0, "")
    assert node.calls() == [
        ["skopeo", "--tmpdir", folder, "copy", "--quiet", "docker://a/b:1", f"oci:{folder}/image:job"],
        ["umoci", "unpack", "--rootless", "--image", f"{folder}/image:job", f"{folder}/bundle"],
        ["jq", "-er", COMMAND, f"{folder}/bundle/config.json"],
        step(f"--container={folder}/bundle", *command, cpus=4),
        command,
    ]
    assert list(node.images.iterdir()) == []


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(image=TEXTS)
def test_no_name_of_an_image_is_read_by_the_shell(node: Node, image: str) -> None:
    text = script(node, Runtime.SLURM, image=f"docker://{image}")
    done = node.run(text)
    assert (done.returncode, done.stderr) == (0, "")
    assert node.calls()[0][5] == f"docker://{image}"
    assert len(node.calls()) == 5
    assert sbatch.directives(text) == ()


def test_nothing_runs_on_a_node_where_slurm_would_ignore_the_container(node: Node) -> None:
    (node.folder / "oci.conf").unlink()
    done = node.run(script(node, Runtime.SLURM, image="docker://a"))
    assert done.returncode == 1
    assert "has no oci.conf" in done.stderr
    assert node.calls() == []
    assert list(node.images.iterdir()) == []


def test_an_image_without_a_command_runs_nothing(node: Node) -> None:
    done = node.run(script(node, Runtime.SLURM, image="docker://a"), IMAGE_COMMAND="")
    assert (done.returncode, done.stderr) == (1, "The image has no command that could be run.\n")
    assert node.calls()[-1][0] == "jq"
    assert list(node.images.iterdir()) == []


def test_the_exit_code_of_the_image_is_that_of_the_job(node: Node) -> None:
    text = script(node, Runtime.SLURM, image="docker://a")
    assert node.run(text, EXIT="3").returncode == 3
    assert node.run(text, FAIL="skopeo").returncode == 7
    assert [call[0] for call in node.calls()] == ["skopeo"]
    assert list(node.images.iterdir()) == []


@pytest.mark.parametrize("image", ["library://a", "local.file/a.sif", "alpine", "docker://"])
def test_an_image_that_is_in_no_registry_needs_apptainer(node: Node, image: str) -> None:
    with pytest.raises(InvalidJob, match=r"spec\.image: must begin with docker://"):
        script(node, Runtime.SLURM, image=image)


@pytest.mark.parametrize(
    "option",
    [
        *({name: True} for name in ("cleanEnv", "fakeRoot", "ipc", "pid", "noPrivs", "writable")),
        {"app": "a"},
        {"hostName": "a"},
        {"binds": ["/a"]},
    ],
)
def test_an_option_of_apptainer_needs_apptainer(node: Node, option: dict[str, Any]) -> None:
    with pytest.raises(InvalidJob) as refused:
        script(node, Runtime.SLURM, image="docker://a", options=option)
    assert refused.value.field == f"spec.options.{next(iter(option))}"
    assert "needs Apptainer" in refused.value.reason


def test_every_option_has_a_case_above() -> None:
    tried = {name for options, _ in OPTIONS for name in options} | {"writable", "allowUnsigned"}
    assert tried == {field.alias for field in wlm.ContainerOptions.model_fields.values()}


# pyxis


@pytest.mark.parametrize(
    ("image", "named"),
    [
        ("docker://alpine:3", "docker://alpine:3"),
        ("docker://library/alpine", "docker://library/alpine"),
        ("docker://ghcr.io/team/tool:1", "docker://ghcr.io#team/tool:1"),
        ("docker://localhost:5000/tool", "docker://localhost:5000#tool"),
        ("local.file/images/a b.sqsh", "/images/a b.sqsh"),
    ],
)
def test_pyxis_gets_the_image_in_the_words_of_enroot(node: Node, image: str, named: str) -> None:
    options = {"allowUnsigned": image.startswith("local.file")}
    text = script(node, Runtime.PYXIS, image=image, options=options, resources={"nodes": 2, "cpuPerNode": 4})
    # The stand-in for srun runs what is left of its words, and a node has no /etc/rc for sh.
    node.run(text)
    words = (f"--container-image={named}", "--container-readonly", "--no-container-remap-root", "sh", "/etc/rc")
    assert node.calls() == [step(*words, cpus=4)]


def test_options_that_pyxis_has(node: Node) -> None:
    options = {"writable": True, "fakeRoot": True, "binds": ["/data:/mnt:ro", "/scratch", "/it's:/a b"]}
    node.run(script(node, Runtime.PYXIS, image="docker://a", options=options))
    mounts = "--container-mounts=/data:/mnt:ro,/scratch:/scratch,/it's:/a b"
    words = ("--container-image=docker://a", "--container-writable", "--container-remap-root", mounts, "sh", "/etc/rc")
    assert node.calls() == [step(*words)]


@pytest.mark.parametrize(
    ("field", "spec"),
    [
        *(
            (f"options.{name}", {"options": {name: value}})
            for name, value in {
                **dict.fromkeys(("cleanEnv", "ipc", "pid", "noPrivs"), True),
                "app": "a",
                "hostName": "a",
                "binds": ["/a,/etc:/b"],
            }.items()
        ),
        ("options.binds", {"options": {"binds": ["/a:/b:ro:rw"]}}),
        ("options.binds", {"options": {"binds": [":/b"]}}),
        ("options.allowUnsigned", {"image": "local.file/a.sqsh"}),
        *(
            ("image", {"image": image})
            for image in ("library://a", "alpine", "docker://", "docker://a@b", "docker://a#b")
        ),
    ],
)
def test_what_pyxis_has_not_is_refused(node: Node, field: str, spec: dict[str, Any]) -> None:
    with pytest.raises(InvalidJob) as refused:
        script(node, Runtime.PYXIS, **{"image": "docker://a", **spec})
    assert refused.value.field == f"spec.{field}"


# Both


@pytest.mark.parametrize("runtime", [Runtime.APPTAINER, Runtime.SLURM])
def test_more_nodes_need_a_folder_that_they_share(runtime: Runtime) -> None:
    spec = wlm.WlmJobSpec.model_validate({"image": "docker://a", "resources": {"nodes": 2}})
    with pytest.raises(InvalidJob, match=r"spec\.resources\.nodes: only the first node"):
        translate(spec, Site(runtime=runtime))
    assert translate(spec, Site(runtime=runtime, is_folder_shared=True)).spec.nodes == "2"
    one = wlm.WlmJobSpec.model_validate({"image": "docker://a", "resources": {"nodes": 1}})
    assert translate(one, Site(runtime=runtime)).spec.nodes == "1"


def test_pyxis_fetches_the_image_on_each_node() -> None:
    spec = wlm.WlmJobSpec.model_validate({"image": "docker://a", "resources": {"nodes": 2}})
    assert translate(spec, Site(runtime=Runtime.PYXIS)).spec.nodes == "2"


def test_a_file_that_all_nodes_have_needs_no_folder() -> None:
    spec = wlm.WlmJobSpec.model_validate({"image": "local.file/a.sif", "resources": {"nodes": 2}})
    assert translate(spec, Site(runtime=Runtime.APPTAINER)).spec.nodes == "2"


@pytest.mark.parametrize("folder", ["", "tmp", "/a b", "/a:b", "/a\n", "/$HOME", "/" + "a" * 300])
def test_a_folder_for_images_is_a_plain_absolute_path(folder: str) -> None:
    with pytest.raises(ValueError, match="plain absolute path"):
        Site(folder=folder)
