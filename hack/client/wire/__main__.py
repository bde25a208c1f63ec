"""Command line: render the wire modules, or check them, or print new specifications first."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hack.client.wire.render import formatted, render
from hack.client.wire.slim import SERVICES, slim

_HERE = Path(__file__).parent
_SPECS = _HERE / "specs"
_WIRE = _HERE.parents[2] / "slurm_client" / "wire"

SOURCES = {
    "v0.0.40": "24.11",
    "v0.0.41": "24.11",
    # The same parser is in both; the newer server binds one operation more to it.
    "v0.0.42": "26.05",
    "v0.0.43": "26.05",
    "v0.0.44": "26.05",
    "v0.0.45": "26.05",
}
"""Which Slurm prints the specification of which data parser."""

_CONF = """\
ClusterName=spec
SlurmctldHost=localhost
AuthType=auth/slurm
CredType=cred/slurm
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
AccountingStorageType=accounting_storage/slurmdbd
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m hack.client.wire", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["wire", "specs", "check"], default="wire")
    what = parser.parse_args(arguments).what
    if what == "specs":
        write_specs()
    if what == "check":
        return check()
    write_wire(_WIRE)
    return 0


def write_specs() -> None:
    """Let slurmrestd of each version print its specification, and keep the slimmed ones. Needs root."""
    from hack.images.rootfs import ensure  # noqa: PLC0415 - rendering needs no images

    _SPECS.mkdir(exist_ok=True)
    for version, series in SOURCES.items():
        printed = print_spec(ensure(series), version)
        for service in SERVICES:
            text = json.dumps(slim(printed, version, service), indent=1, sort_keys=True)
            _spec(version, service).write_text(text + "\n")


def _spec(version: str, service: str) -> Path:
    return _SPECS / f"{version}{'' if service == 'slurm' else f'-{service}'}.json"


def print_spec(root: Path, version: str) -> dict[str, object]:
    """
    Return what slurmrestd in this root tree prints as the specification of a data parser.

    ``prefer_refs`` gives every object a name; without it v0.0.41 writes all of them out wherever they occur.
    """
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "slurm.conf").write_text(_CONF)
        enter = 'mount --bind "$1" "$2/mnt" && root=$2 && shift 2 && exec chroot "$root" "$@"'
        options = ["-s", "openapi/slurmctld,openapi/slurmdbd", "-d", f"{version}+prefer_refs", "-f", "/mnt/slurm.conf"]
        command = ["slurmrestd", "--generate-openapi-spec", *options]
        result = subprocess.run(
            ["unshare", "--mount", "sh", "-c", enter, "sh", folder, str(root), *command],
            check=True,
            stdout=subprocess.PIPE,
        )
    spec: dict[str, object] = json.loads(result.stdout)
    return spec


def write_wire(target: Path) -> None:
    """Render the modules of all data parsers below ``target``."""
    for version in SOURCES:
        folder = target / version.replace(".", "_")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for service in SERVICES:
            for name, text in render(json.loads(_spec(version, service).read_text())).items():
                (folder / name).write_text(text)
        formatted(folder)


def check() -> int:
    """Say whether what is committed is what would be rendered."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder)
        write_wire(fresh)
        stale = [
            str(path.relative_to(fresh))
            for path in sorted(fresh.rglob("*.py"))
            if not (_WIRE / path.relative_to(fresh)).is_file()
            or (_WIRE / path.relative_to(fresh)).read_bytes() != path.read_bytes()
        ]
    for path in stale:
        print(f"slurm_client/wire/{path} is not what the specification gives", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
