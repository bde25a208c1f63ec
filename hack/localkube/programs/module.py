"""Our Go module: what is built from it, and the calls of Go that fetch and compile.

One ``go.mod`` pins Kubernetes, CoreDNS, helm and the volume provisioner together, so that the packages they share
(client-go, the API types, protobuf, gRPC) are compiled once. It leaves where results are kept to `programs.build`.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack.localkube.errors import BuildFailed, MissingProgram
from hack.machine import go
from hack.machine.downloads import persist
from hack.machine.progress import say, step

KUBERNETES_VERSION: Final = "v1.34.4"
HELM_VERSION: Final = "v3.19.4"
FOLDER: Final = Path(__file__).parent

MULTICALL_NAMES: Final = (
    "coredns",
    "devices",
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "kubectl",
)

# The linker drops debug information anyway (-s -w); to make none saves a sixth of the compiler's time.
_COMPILER_FLAGS: Final = ("-trimpath", "-gcflags=all=-dwarf=false")

_FETCHES_AT_A_TIME: Final = 16
"""Modules that are fetched at the same time."""

_NOTHING: Final = '{{""}}'
"""What ``go list`` prints of a package: only errors are of interest."""


@dataclass(frozen=True, slots=True)
class Program:
    """One program of the module.

    Attributes
    ----------
    name
        The file name of the result.
    package
        What is compiled: a folder of the module (``./kubernetes``), or a package of a module that ours requires.
    names
        What it is called by; the name of the file decides what a program of many parts does.
    ldflags
        Given to the Go linker besides ``-s -w``.
    apart
        Compiled by a call of its own: Go refuses it beside the others.
    folder
        The folder with ``go.mod`` and ``go.sum``.
    """

    name: str
    package: str
    names: tuple[str, ...] = ()
    ldflags: str = ""
    apart: bool = False
    folder: Path = FOLDER

    def key(self) -> str:
        """Return the name of its folder in the cache: the program and a hash of everything it is built from."""
        digest = hashlib.sha256(" ".join([*_COMPILER_FLAGS, self.package, self.ldflags]).encode())
        own = sorted((self.folder / self.package).glob("*.go")) if self.package.startswith("./") else []
        for file in (self.folder / "go.mod", self.folder / "go.sum", *own):
            digest.update(file.read_bytes())
        return f"{self.name}-{digest.hexdigest()[:12]}"


def _kubernetes_ldflags() -> str:
    package = "k8s.io/component-base/version"
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    values = {"gitVersion": KUBERNETES_VERSION, "gitMajor": major, "gitMinor": minor}
    return " ".join(f"-X {package}.{key}={value}" for key, value in values.items())


def _helm_ldflags() -> str:
    """What helm's own Makefile sets: without it, `helm template` takes the cluster for Kubernetes v1.20."""
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    module = "helm.sh/helm/v3"
    values = {f"{module}/internal/version.version": HELM_VERSION}
    for package in ("pkg/chartutil", "pkg/lint/rules"):
        values |= {f"{module}/{package}.k8sVersionMajor": major, f"{module}/{package}.k8sVersionMinor": minor}
    return " ".join(f"-X {key}={value}" for key, value in values.items())


KUBERNETES: Final = Program("kubernetes", "./kubernetes", MULTICALL_NAMES, _kubernetes_ldflags())
HELM: Final = Program("helm", "helm.sh/helm/v3/cmd/helm", ("helm",), _helm_ldflags())
# It imports logrus by the name it had in 2017, which Go refuses beside today's.
PROVISIONER: Final = Program(
    "local-path-provisioner", "github.com/rancher/local-path-provisioner", ("local-path-provisioner",), apart=True
)


def compile_into(target: Path, programs: Sequence[Program]) -> None:
    """Fetch what is missing of the module, and compile programs of it.

    Parameters
    ----------
    target
        The folder that receives the programs, each under its name.
    programs
        What to compile, all of one folder. Those that are not `Program.apart` are compiled by one call, so that the
        linker of one runs beside the compiler of another.

    Raises
    ------
    MissingProgram
        There is no Go.
    BuildFailed
        The compiler or the download failed; the text has its words.
    """
    compiler = go.find()
    if compiler is None:
        raise MissingProgram("go", "install Go 1.24 or newer (your distribution's package, or the archive from go.dev)")
    folder = programs[0].folder
    environment = {
        # More memory for fewer collections: of the compiler's time for a large package a third.
        "GOGC": "400",
        **os.environ,
        "CGO_ENABLED": "0",
        "GOFLAGS": "-buildvcs=false",
    }
    together = [program for program in programs if not program.apart]
    calls = [*([together] if together else []), *([program] for program in programs if program.apart)]
    # Go fetches as many modules at a time as there are processors, and would wait for the network most of the time.
    fetching = {**environment, "GOMAXPROCS": str(_FETCHES_AT_A_TIME)}
    with step("fetch the Go modules"):
        for call in calls:
            packages = [program.package for program in call]
            # To list what a program is made of, all of it must be there; nothing that is not needed is fetched.
            _run([compiler, "list", "-deps", f"-f={_NOTHING}", *packages], folder, fetching, "the Go modules")
    for call in calls:
        names = " and ".join(program.name for program in call)
        ldflags = " ".join(["-s -w", *(program.ldflags for program in call)]).strip()
        packages = [program.package for program in call]
        command = [compiler, "build", *_COMPILER_FLAGS, "-ldflags", ldflags, "-o", f"{target}/", *packages]
        with step(f"compile {names} (once)"):
            _run(command, folder, environment, names)


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str], what: str) -> None:
    def attempt() -> tuple[int, str]:
        run = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return run.returncode, run.stdout

    status, output = persist(f"build {what}", attempt, say)
    if status != 0:
        raise BuildFailed(what, output)
