"""Each wheel of a release is installed into an empty environment, and does what it is for."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from hack.release import version

pytestmark = pytest.mark.full

VERSION = version.current()


class Environment:
    """A virtual environment with wheels, and the dependencies of the one that runs the tests."""

    def __init__(self, folder: Path, *wheels: Path) -> None:
        self.bin = folder / "bin"
        venv.create(folder, with_pip=False)
        pip = [sys.executable, "-m", "pip", f"--python={self.bin / 'python'}", "install", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--no-index", "--disable-pip-version-check", *map(str, wheels)], check=True)
        (packages,) = folder.glob("lib/python*/site-packages")
        (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def run(self, *command: str) -> str:
        """Run a program of it, where nothing of the repository is to be found."""
        done = subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.bin,
            env={"PATH": "/usr/bin:/bin"},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def wheel(folder: Path, name: str) -> Path:
    (found,) = folder.glob(f"wheels/{name}-{VERSION}-*.whl")
    return found


@pytest.fixture(scope="module")
def operator(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """With the plugin, whose wheel needs this one."""
    wheels = [wheel(folder, name) for name in ("slinky_operator", "kubectl_slurm")]
    return Environment(tmp_path_factory.mktemp("operator"), *wheels)


@pytest.fixture(scope="module")
def client(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("client"), wheel(folder, "slurm_rest_client"))


def test_the_operator_and_the_exporter_start(operator: Environment) -> None:
    assert "usage: slurm-operator" in operator.run("slurm-operator", "--help")
    assert "usage: slurm-exporter" in operator.run("slurm-exporter", "--help")


def test_the_plugin_starts_and_asks_for_the_operators_wheel(folder: Path, operator: Environment) -> None:
    assert VERSION in operator.run("kubectl-slurm", "--version")
    with zipfile.ZipFile(wheel(folder, "kubectl_slurm")) as packed:
        (name,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        assert f"Requires-Dist: slinky-operator=={VERSION}\n" in packed.read(name).decode()


def test_values_are_converted_with_the_operators_wheel(operator: Environment, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("nodesets: {slinky: {replicas: 3}}\n")
    assert "replicas: 3" in operator.run("slurm-operator", "convert", "--chart=slurm", f"--filename={values}")


def test_templates_and_other_files_of_packages_are_in_the_wheel(operator: Environment) -> None:
    program = (
        "from importlib.resources import files\n"
        "found = [path for name in ('slinky_operator', 'slurm_client', 'slinky_api') "
        "for path in files(name).rglob('*') if path.suffix in {'.j2', '.json', '.sh'} or path.name == 'py.typed']\n"
        "print(*sorted(str(path).partition('site-packages/')[2] for path in found), sep='\\n')"
    )
    found = set(operator.run("python", "-c", program).split())
    wanted = {
        str(path.relative_to(version.ROOT)).removeprefix("api/")
        for name in ("slinky_operator", "slurm_client", "api/slinky_api")
        for path in (version.ROOT / name).rglob("*")
        if path.suffix in {".j2", ".json", ".sh"} or path.name == "py.typed"
    }
    unneeded = {path for path in wanted if path.startswith(("slurm_client/docs", "slurm_client/examples"))}
    assert found == wanted - unneeded


def test_the_client_is_imported_without_the_operator(client: Environment) -> None:
    said = client.run("python", "-c", "import slurm_client; print(slurm_client.__version__, slurm_client.__file__)")
    assert said.startswith(VERSION)
    assert "site-packages/slurm_client" in said
    program = "import importlib.util as util; print([util.find_spec(n) for n in ('slinky_operator', 'slinky_api')])"
    assert client.run("python", "-c", program) == "[None, None]\n"
    assert "Usage: slurm-rest" in client.run("slurm-rest", "--help")
