"""skaffold, crane and kind, built once from one Go module (`go/go.mod`) like those of the local Kubernetes.

Its lines `exclude` and `replace` are those of skaffold's own go.mod, which Go ignores in a module that is required.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hack.localkube.programs.module import Program

FOLDER: Final = Path(__file__).parent / "go"
SKAFFOLD_VERSION: Final = "v2.16.1"
_SKAFFOLD: Final = "github.com/GoogleContainerTools/skaffold/v2"

SKAFFOLD: Final = Program(
    "skaffold",
    f"{_SKAFFOLD}/cmd/skaffold",
    ("skaffold",),
    f"-X {_SKAFFOLD}/pkg/skaffold/version.version={SKAFFOLD_VERSION}",
    folder=FOLDER,
)
CRANE: Final = Program("crane", "github.com/google/go-containerregistry/cmd/crane", ("crane",), folder=FOLDER)
KIND: Final = Program("kind", "sigs.k8s.io/kind", ("kind",), folder=FOLDER)
