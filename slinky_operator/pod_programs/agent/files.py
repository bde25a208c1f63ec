"""Digests of files, on both sides: the agent's of what is mounted, the operator's of what it wrote."""

import hashlib
from collections.abc import Mapping
from pathlib import Path


def digest(content: bytes) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def expected(files: Mapping[str, str]) -> dict[str, str]:
    """Digests of files as a ConfigMap holds them."""
    return {name: digest(text.encode()) for name, text in files.items()}


def mounted(folder: Path) -> dict[str, str]:
    """Digests of the files in a folder; a volume's own bookkeeping, which begins with two dots, is left out.

    The kubelet swaps the whole folder with one rename: what is read through one resolved path belongs together.

    Raises
    ------
    OSError
        If the folder cannot be read, or is swapped meanwhile.
    """
    return {
        path.name: digest(path.read_bytes())
        for path in sorted(_resolved(folder).iterdir())
        if not path.name.startswith("..") and path.is_file()
    }


def text_of(folder: Path, name: str) -> str:
    """Content of one mounted file; raises `OSError` if it cannot be read."""
    return (_resolved(folder) / name).read_text(errors="replace")


def _resolved(folder: Path) -> Path:
    data = folder / "..data"
    return data.resolve(strict=True) if data.exists() else folder
