"""The roles start fast and stay small."""

from __future__ import annotations

import os
import subprocess
import sys

HEAVY = ("pydantic", "httpx", "aiohttp", "asyncio", "yaml", "typing_extensions", "slinky_api", "slurm_client")


def test_they_need_the_standard_library_only() -> None:
    code = f"import sys, slinky_operator.pod_programs.joblogs.command; print(*(m for m in {HEAVY} if m in sys.modules))"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": "."}
    )
    assert found.stdout.strip() == ""
