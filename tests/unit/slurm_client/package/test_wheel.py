"""
The client's own wheel, in environments that have what it requires and nothing else.

What it requires is not installed but lent from the environment of the tests, as its metadata name it: no network.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from email.parser import HeaderParser
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

SOURCE = Path(__file__).parents[4] / "slurm_client"
NEVER = ("kopf", "kubernetes", "pydantic", "jinja2", "slinky_operator", "slinky_api")
EXTRAS = {"jwt": {"jwt", "cryptography"}, "testing": {"aiohttp", "jwt", "pytest"}, "cli": {"click"}}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(SOURCE, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    pip += ["--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([*pip, str(folder / "source")], check=True)
    (found,) = folder.glob("*.whl")
    return found


class Environment:
    """A virtual environment with the wheel and what one extra of it requires."""

    def __init__(self, folder: Path, wheel: Path, extra: str) -> None:
        venv.create(folder, symlinks=True)
        self.folder = folder
        pip = [sys.executable, "-m", "pip", "--python", str(self.program("python")), "install", "--quiet"]
        pip += ["--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)]
        subprocess.run(pip, check=True)
        (packages,) = folder.glob("lib/python*/site-packages")
        for name in required(wheel, extra):
            for file in metadata.distribution(name).files or ():
                top = packages / file.parts[0]
                if file.parts[0] != ".." and not top.exists():
                    top.symlink_to(Path(str(file.locate())).parents[len(file.parts) - 1] / file.parts[0])

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name

    def run(self, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        # Not the variables of this test run: they name its own modules and plugins.
        variables = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return subprocess.run(
            [str(self.program(command[0])), *command[1:]],
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd or self.folder,
        )

    def python(self, code: str) -> str:
        done = self.run("python", "-I", "-W", "error", "-c", code)
        assert done.returncode == 0, done.stderr
        return done.stdout


def required(wheel: Path, extra: str) -> set[str]:
    """Names of all distributions that the wheel requires with an extra, and what they require."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        head = HeaderParser().parsestr(archive.read(name).decode())
    found: set[tuple[str, str]] = set()
    open_ = [(Requirement(line), extra) for line in head.get_all("Requires-Dist", [])]
    while open_:
        requirement, of = open_.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": of}):
            continue
        for inner in ("", *requirement.extras):
            if (requirement.name, inner) not in found:
                found.add((requirement.name, inner))
                installed = metadata.distribution(requirement.name)
                assert requirement.specifier.contains(installed.version), requirement
                open_ += [(Requirement(line), inner) for line in installed.requires or ()]
    return {name for name, _ in found}


@pytest.fixture(scope="module")
def having(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Environment]:
    """Return the environment with an extra, made when it is first asked for."""
    return functools.cache(lambda extra: Environment(tmp_path_factory.mktemp("environment"), wheel, extra))


@pytest.fixture
def plain(having: Callable[[str], Environment]) -> Environment:
    return having("")


def test_the_wheel_has_every_module_and_no_other(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    left_out = {"docs", "examples"}
    wanted = {
        f"slurm_client/{path.relative_to(SOURCE)}"
        for path in SOURCE.rglob("*")
        if path.suffix in {".py", ".json", ".typed"} and path.relative_to(SOURCE).parts[0] not in left_out
    }
    assert names == wanted


def test_all_modules_are_imported_without_any_extra(plain: Environment) -> None:
    shown = plain.python(
        "import importlib, pkgutil, sys, slurm_client\n"
        "rooms = ('slurm_client.testing', 'slurm_client.cli')\n"
        "for each in pkgutil.walk_packages(slurm_client.__path__, 'slurm_client.'):\n"
        "    if not each.name.startswith(rooms) and not each.name.endswith('__main__'):\n"
        "        importlib.import_module(each.name)\n"
        "print(slurm_client.__version__)\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    version, modules = shown.splitlines()
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert "slurm_client" in modules.split()
    assert not {*NEVER, *set().union(*EXTRAS.values())} & set(modules.split())


@pytest.mark.parametrize("extra", ["", *EXTRAS])
def test_an_extra_adds_what_it_says(extra: str, having: Callable[[str], Environment]) -> None:
    environment = having(extra)
    asked = [*NEVER, *sorted(set().union(*EXTRAS.values()))]
    shown = environment.python(
        f"from importlib.util import find_spec\nprint(*[name for name in {asked!r} if find_spec(name) is not None])"
    )
    assert set(shown.split()) == EXTRAS.get(extra, set())


def test_a_client_asks_without_any_extra(plain: Environment) -> None:
    shown = plain.python(
        "import httpx\n"
        "from slurm_client import SyncSlurmClient, errors\n"
        "refuses = httpx.MockTransport(lambda request: httpx.Response(401))\n"
        "with SyncSlurmClient('http://any', 'token', transport=refuses) as it:\n"
        "    try:\n"
        "        it.nodes()\n"
        "    except errors.Unauthorized as error:\n"
        "        print('asked')"
    )
    assert shown == "asked\n"


def test_what_needs_an_extra_names_it(plain: Environment) -> None:
    done = plain.run("slurm-rest", "nodes")
    assert done.returncode == 2
    assert done.stderr == "slurm-rest: click is not installed; run: pip install 'slurm-rest-client[cli]'\n"
    shown = plain.python(
        "import asyncio\n"
        "from slurm_client import MintedToken, errors\n"
        "try:\n"
        "    asyncio.run(MintedToken(b'k' * 32).token())\n"
        "except errors.Unauthorized as error:\n"
        "    print(error)"
    )
    assert shown.strip() == "cannot mint a token: PyJWT is not installed; run: pip install 'slurm-rest-client[jwt]'"


def test_jwt_signs_with_both_algorithms(having: Callable[[str], Environment]) -> None:
    shown = having("jwt").python(
        "import asyncio\n"
        "from cryptography.hazmat.primitives import serialization as s\n"
        "from cryptography.hazmat.primitives.asymmetric import rsa\n"
        "from slurm_client import MintedToken\n"
        "key = rsa.generate_private_key(65537, 2048)\n"
        "pem = key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())\n"
        "for it in (MintedToken(b'k' * 32), MintedToken(pem, algorithm='RS256')):\n"
        "    print(asyncio.run(it.token()).count('.'))"
    )
    assert shown.split() == ["2", "2"]


def test_cli_has_the_command(having: Callable[[str], Environment]) -> None:
    environment = having("cli")
    done = environment.run("slurm-rest", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("slurm-rest, version ")
    assert environment.run("python", "-m", "slurm_client", "--version").stdout == done.stdout


def test_testing_has_the_fixtures(having: Callable[[str], Environment], tmp_path: Path) -> None:
    (tmp_path / "test_users.py").write_text(
        "import pytest\n"
        "@pytest.fixture\n"
        "def fake_slurm_options():\n"
        "    return {'release': '24.11.5'}\n"
        "def test_a_node(fake_slurm, fake_slurm_client):\n"
        "    fake_slurm.add_node('w-0')\n"
        "    assert [node.name for node in fake_slurm_client.nodes()] == ['w-0']\n"
        "    assert fake_slurm_client.slurm_version == '24.11.5'\n"
    )
    done = having("testing").run("python", "-m", "pytest", "-q", cwd=tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
