"""Build Kubernetes, CoreDNS, helm and the volume provisioner from their Go modules, once per version.

Each program lies in the cache under a name that holds a hash of everything it is built from, so a new version never
overwrites one that a running cluster uses, and tests never rebuild what is there. Versions are pinned by go.mod and
go.sum here (Kubernetes, CoreDNS) or by the module version below (the sum database of Go vouches for the content).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack import go
from hack.downloads import persist
from hack.localkube.errors import BuildFailed, MissingProgram, NoSpace
from hack.localkube.paths import cache_root
from hack.progress import say, step

KUBERNETES_VERSION = "v1.34.4"
HELM_VERSION = "v3.22.0"
MULTICALL_NAMES = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "kubectl",
)
BUILD_NEEDS_MIB = 6000
_UNFINISHED = ".unfinished-"
SOURCES = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Program:
    """One program and what it is built from.

    Attributes
    ----------
    name
        The file name of the result.
    source
        A folder of ours with a go.mod, or a package with a version for ``go install``.
    ldflags
        Given to the Go linker besides ``-s -w``.
    """

    name: str
    source: Path | str
    ldflags: str = ""

    def key(self) -> str:
        """Return the name of the cache folder: program and a hash of what it is built from."""
        digest = hashlib.sha256(self.ldflags.encode())
        if isinstance(self.source, str):
            digest.update(self.source.encode())
        else:
            for file in ("go.mod", "go.sum", "main.go"):
                digest.update((self.source / file).read_bytes())
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


KUBERNETES = Program("kubernetes", SOURCES / "kubernetes", _kubernetes_ldflags())
COREDNS = Program("coredns", SOURCES / "coredns")
HELM = Program("helm", f"helm.sh/helm/v3/cmd/helm@{HELM_VERSION}", _helm_ldflags())
PROVISIONER = Program("local-path-provisioner", "github.com/rancher/local-path-provisioner@v0.0.30")


def ensure(*programs: Program) -> None:
    """Build the programs that the cache does not hold, and link their names into `bin_folder`.

    Raises
    ------
    MissingProgram
        There is no Go.
    NoSpace
        The cache's file system is too full for a build.
    BuildFailed
        The compiler or the download failed; the text has its words.
    """
    for program in programs:
        if not binary(program).exists():
            with _lock(program):
                # Another process may have built it while this one waited.
                if not binary(program).exists():
                    _build(program)
    _link(programs)


def binary(program: Program) -> Path:
    """Return where the program lies once it is built."""
    return cache_root() / "programs" / program.key() / program.name


def bin_folder() -> Path:
    """Return the folder with the names of all programs, for a PATH."""
    return cache_root() / "bin"


def tool(name: str) -> Path:
    """Return the path of a program by the name it is called by, ``kubectl`` for example."""
    return bin_folder() / name


@contextmanager
def _lock(program: Program) -> Iterator[None]:
    # Two test runs on one machine share the cache: the second waits and then finds everything there. Who needs one
    # program does not wait for another.
    folder = cache_root() / "programs"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{program.name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _build(program: Program) -> None:
    compiler = go.find()
    if compiler is None:
        raise MissingProgram("go", "install Go 1.24 or newer (your distribution's package, or the archive from go.dev)")
    free = shutil.disk_usage(cache_root()).free // 2**20
    if free < BUILD_NEEDS_MIB:
        raise NoSpace(cache_root(), free, BUILD_NEEDS_MIB)
    target = binary(program)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Where our process was killed, its compiler may live on, and must find nothing to write to.
    for left in target.parent.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(left)
    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=target.parent))
    flags = ["-trimpath", "-ldflags", f"-s -w {program.ldflags}".strip()]
    environment = dict(os.environ, CGO_ENABLED="0", GOBIN=str(unfinished), GOFLAGS="-buildvcs=false")
    if isinstance(program.source, str):
        command, folder = [compiler, "install", *flags, program.source], unfinished
    else:
        command, folder = [compiler, "build", *flags, "-o", str(unfinished / program.name), "."], program.source
    with step(f"build {program.name} from its Go module (once)"):
        status, output = persist(f"build {program.name}", lambda: _go(command, folder, environment), say)
        if status != 0:
            raise BuildFailed(program.name, output)
        (unfinished / program.name).replace(target)
        shutil.rmtree(unfinished)


def _go(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    run = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return run.returncode, run.stdout


def _link(programs: tuple[Program, ...]) -> None:
    folder = bin_folder()
    folder.mkdir(parents=True, exist_ok=True)
    for program in programs:
        names = MULTICALL_NAMES if program is KUBERNETES else (program.name,)
        for name in names:
            link = folder / name
            if link.is_symlink() and link.readlink() == binary(program):
                continue
            fresh = folder / f".{name}.{os.getpid()}.{threading.get_ident()}"
            # Left by a process that was killed and had the same number, on a machine that has started anew since.
            fresh.unlink(missing_ok=True)
            fresh.symlink_to(binary(program))
            fresh.replace(link)
