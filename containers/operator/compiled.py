"""Compile those of Python's own modules that some others import, in a copy of the system below a folder.

Called as ``python compiled.py FOLDER MODULE...``.
"""

from __future__ import annotations

import importlib
import py_compile
import sys
from pathlib import Path


def main(root: Path, modules: list[str]) -> None:
    """Import the modules, and compile what lies in the folder of Python itself."""
    for module in modules:
        importlib.import_module(module)
    for file in sorted({str(getattr(module, "__file__", None)) for module in list(sys.modules.values())}):
        if file.startswith("/usr/lib/python3") and file.endswith(".py"):
            # By content, not by time: the same files give the same image.
            mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
            py_compile.compile(f"{root}{file}", dfile=file, doraise=True, invalidation_mode=mode)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
