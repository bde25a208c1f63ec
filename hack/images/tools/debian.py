"""What comes from Debian: the tools of the host, and the base tree that replaces ``debian:<suite>-slim``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.images.cache import remove_tree
from hack.images.errors import HostToolMissing, NotRoot
from hack.images.tools.run import Runner
from hack.machine import apt

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
#: Part of the same package since it knows the keys of Debian 13, with which unstable is signed as well.
NEWEST_KEYS = Path("/usr/share/keyrings/debian-archive-trixie-automatic.gpg")

_PACKAGES = {"debootstrap": "debootstrap", "buildah": "buildah"}
_SCRIPTS = Path("/usr/share/debootstrap")

#: As in Debian's own slim images; no syncing, because a tree that a crash cut short is thrown away anyhow.
DPKG_SETTINGS = """\
force-unsafe-io
path-exclude=/usr/share/doc/*
path-include=/usr/share/doc/*/copyright
path-exclude=/usr/share/groff/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/linda/*
path-exclude=/usr/share/lintian/*
path-exclude=/usr/share/locale/*
path-exclude=/usr/share/man/*
"""
_UNWANTED = (
    "usr/share/groff",
    "usr/share/info",
    "usr/share/linda",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/man",
    "var/cache/apt/archives",
    "var/lib/apt/lists",
    "var/log",
)


def require_root(what: str) -> None:
    """Check that we may chroot and mount.

    Raises
    ------
    NotRoot
        We may not.
    """
    if os.geteuid() != 0:
        raise NotRoot(what)


def require_tools(runner: Runner) -> None:
    """Make sure that debootstrap, buildah and Debian's keys are there, installing their packages where not.

    Raises
    ------
    HostToolMissing
        A package could not be installed.
    """
    missing = {tool: package for tool, package in _PACKAGES.items() if shutil.which(tool) is None}
    if not KEYRING.exists() or not NEWEST_KEYS.exists():
        missing[str(NEWEST_KEYS)] = "debian-archive-keyring"
    if not missing:
        return
    tool, package = next(iter(missing.items()))
    runner.progress(f"  ...  installing {', '.join(missing.values())}")
    try:
        apt.install(list(missing.values()), runner.progress)
    except apt.AptFailed as error:
        raise HostToolMissing(tool, package, str(error)) from error
    if not NEWEST_KEYS.exists():
        raise HostToolMissing(str(NEWEST_KEYS), "debian-archive-keyring", "the newest here lacks the keys of Debian 13")


@contextmanager
def _script_folder(suite: str, scratch: Path) -> Iterator[dict[str, str]]:
    """Give the environment in which debootstrap knows the suite, even one older than the suite."""
    if (_SCRIPTS / "scripts" / suite).exists():
        yield dict(os.environ)
        return
    # All recent suites are bootstrapped by the same script; only the name is missing.
    folder = scratch / "debootstrap"
    shutil.copytree(_SCRIPTS, folder, symlinks=True)
    (folder / "scripts" / suite).symlink_to("sid")
    yield {**os.environ, "DEBOOTSTRAP_DIR": str(folder)}
    shutil.rmtree(folder)


@contextmanager
def base_tree(suite: str, scratch: Path, runner: Runner) -> Iterator[Path]:
    """Bootstrap a minimal, slim Debian into a folder that lives as long as the block.

    Parameters
    ----------
    suite
        ``trixie``, ``sid``.
    scratch
        A folder of the build.
    runner
        Runs debootstrap.

    Raises
    ------
    StepFailed
        debootstrap failed; NetworkFailed and KeyringTooOld where that is why.
    """
    tree = scratch / "tree"
    remove_tree(tree)
    settings = tree / "etc/dpkg/dpkg.cfg.d/slim"
    settings.parent.mkdir(parents=True)
    settings.write_text(DPKG_SETTINGS)
    try:
        with _script_folder(suite, scratch) as env:
            command = ["debootstrap", "--variant=minbase", f"--keyring={KEYRING}", suite, str(tree)]
            runner.run(f"debootstrap {suite}", command, env)
        _slim(tree)
        yield tree
    finally:
        remove_tree(tree)


def _slim(tree: Path) -> None:
    """Remove what the settings exclude but debootstrap had unpacked before dpkg could read them."""
    for name in _UNWANTED:
        folder = tree / name
        for path in folder.glob("*") if folder.is_dir() else ():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    for path in (tree / "usr/share/doc").glob("*/*"):
        if path.name != "copyright":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for path in (tree / "var/cache/apt").glob("*.bin"):
        path.unlink()
    # The host's name server and name, copied for the time of the bootstrap.
    for name in ("etc/resolv.conf", "etc/hostname"):
        (tree / name).unlink(missing_ok=True)
