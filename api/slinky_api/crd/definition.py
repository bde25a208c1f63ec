"""A CustomResourceDefinition around a model's schema."""

from typing import Any

import yaml
from typing_extensions import override

from slinky_api.crd.structural import structural
from slinky_api.resource import Column, Resource
from slinky_api.v1alpha1.common import ApiObject

__all__ = ["definition", "to_yaml"]

# The API server's own bound on names. It must be said for rules about the name to have a price.
_NAME_LENGTH = 253


def definition(resource: Resource, model: type[ApiObject]) -> dict[str, Any]:
    """Build the CRD of a kind.

    Parameters
    ----------
    resource
        What it is called and how it is shown.
    model
        What it is.
    """
    root = structural(model)
    spec, status = root["properties"]["spec"], root["properties"]["status"]
    required = "spec" in root.get("required", ())
    if not required:
        # An object without a spec is one with an empty spec: rules need not ask.
        spec = {**spec, "default": {}}
    schema: dict[str, Any] = {
        "type": "object",
        "description": root["description"],
        "properties": {
            "apiVersion": {"type": "string", "description": "Group and version of the kind."},
            "kind": {"type": "string", "description": "The kind."},
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": _NAME_LENGTH}}},
            "spec": spec,
            "status": status,
        },
    }
    if required:
        schema["required"] = ["spec"]
    if rules := root.get("x-kubernetes-validations"):
        schema["x-kubernetes-validations"] = rules

    subresources: dict[str, Any] = {"status": {}}
    if scale := resource.scale:
        subresources["scale"] = {
            "specReplicasPath": scale.spec_replicas,
            "statusReplicasPath": scale.status_replicas,
            "labelSelectorPath": scale.selector,
        }
    names: dict[str, Any] = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.singular,
    }
    if resource.short_names:
        names["shortNames"] = list(resource.short_names)
    if resource.categories:
        names["categories"] = list(resource.categories)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.full_name},
        "spec": {
            "group": resource.group,
            "names": names,
            "scope": "Namespaced",
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [_column(column) for column in resource.columns],
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": subresources,
                }
            ],
        },
    }


def _column(column: Column) -> dict[str, Any]:
    written: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.json_path}
    if column.description:
        written["description"] = column.description
    if column.wide:
        written["priority"] = 1
    return written


class _Dumper(yaml.SafeDumper):
    """Without anchors: equal parts are written out each time, as people expect of a manifest."""

    @override
    def ignore_aliases(self, data: Any) -> bool:
        return True


def to_yaml(obj: dict[str, Any]) -> str:
    """Write an object as YAML, the same for the same object."""
    return yaml.dump(obj, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
