"""What a kind is called and how ``kubectl`` shows it: the parts of a CRD that are no schema.

The constants of each kind are defined beside its model; the CRD generator and the Kubernetes client read them there.
"""

from dataclasses import dataclass

__all__ = ["Column", "Resource", "Scale"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of ``kubectl get``."""

    name: str
    json_path: str
    type: str
    """One of string, integer, number, boolean, date."""
    description: str = ""
    wide: bool = False
    """Whether it is shown with ``-o wide`` only."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Where the scale subresource reads and writes."""

    spec_replicas: str
    status_replicas: str
    selector: str


@dataclass(frozen=True, slots=True)
class Resource:
    """Names of a kind, and what is shown of it."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    scale: Scale | None = None

    @property
    def api_version(self) -> str:
        """``apiVersion`` of objects of this kind."""
        return f"{self.group}/{self.version}"

    @property
    def full_name(self) -> str:
        """Name of the CRD."""
        return f"{self.plural}.{self.group}"
