"""
Rendering of wire modules: openapi-python-client reads the specification, our templates write it down.

Its own templates would give one attrs class and one module for each schema and each operation, in every parser: some
2,000 files that decode slower than a dictionary and refuse an unknown word. Ours give two modules for each parser:
typed dictionaries, which cost nothing at run time and let the type checker see every key of a request, and a table of
operations.
"""

from __future__ import annotations

import keyword
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jinja2
from openapi_python_client.config import Config, ConfigFile, MetaType
from openapi_python_client.parser import GeneratorData
from openapi_python_client.parser.errors import GeneratorError
from openapi_python_client.parser.properties import LiteralEnumProperty, ModelProperty

_TEMPLATES = Path(__file__).parent / "templates"


class RenderError(RuntimeError):
    """A specification cannot be rendered; carries what the generator said."""


def render(spec: dict[str, Any]) -> dict[str, str]:
    """
    Return the modules of one data parser, by file name.

    Raises
    ------
    RenderError
        If openapi-python-client cannot read all of the specification.
    """
    config = Config.from_sources(
        ConfigFile(literal_enums=True), MetaType.NONE, Path("spec.json"), "utf-8", overwrite=True, output_path=None
    )
    data = GeneratorData.from_dict(spec, config=config)
    if isinstance(data, GeneratorError):
        raise RenderError(f"{data.header}\n{data.detail}")
    if data.errors:
        raise RenderError("\n".join(f"{error.header} {error.detail}" for error in data.errors))
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=False,  # noqa: S701 - Python, not HTML
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    version, service = spec["info"]["version"], spec["info"]["title"]
    context = {
        "version": version,
        "service": service,
        "models": sorted((_model(model) for model in data.models), key=lambda model: str(model["name"])),
        "words": sorted(_words(enum) for enum in data.enums if isinstance(enum, LiteralEnumProperty)),
        "operations": list(_operations(spec)),
    }
    # The modules of slurmdbd are imported by those only who ask it.
    before = "" if service == "slurm" else f"{service}_"
    found = {
        f"{before}{name}": environment.get_template(f"{name}.jinja").render(context)
        for name in ("models.py", "operations.py")
    }
    return found | {"__init__.py": environment.get_template("__init__.py.jinja").render(context)}


def _model(model: ModelProperty) -> dict[str, Any]:
    properties = [*(model.required_properties or []), *(model.optional_properties or [])]
    fields = sorted((_raw(each.name), _type(each.get_type_string(no_optional=True))) for each in properties)
    return {
        "name": str(model.class_info.name),
        "fields": fields,
        "plain": all(name.isidentifier() and not keyword.iskeyword(name) for name, _ in fields),
    }


def _type(written: object) -> str:
    """Return a type as the generator writes it, without the quotes of forward references."""
    code = getattr(written, "as_unembedded_code", None)
    text = str(code() if callable(code) else written)
    return re.sub(r"[\"']", "", text).replace("datetime.datetime", "str")


def _raw(value: object) -> str:
    """Return a text of the specification as it is; it goes into quotes, or has been checked to be an identifier."""
    unwrap = getattr(value, "get_untrusted_value", None)
    return str(unwrap() if callable(unwrap) else value)


def _words(enum: LiteralEnumProperty) -> tuple[str, list[str]]:
    return str(enum.class_info.name), sorted(_raw(value) for value in enum.values)


def _operations(spec: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for path, methods in spec["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            found.append(
                {
                    "name": operation["operationId"],
                    "method": method.upper(),
                    "path": path,
                    "query": sorted(
                        parameter["name"] for parameter in operation.get("parameters", []) if parameter["in"] == "query"
                    ),
                    "body": _class_name(body.get("$ref", "").rpartition("/")[2]),
                }
            )
    return sorted(found, key=lambda operation: str(operation["name"]))


def _class_name(schema: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in schema.split("_"))


def formatted(folder: Path) -> None:
    """Format rendered modules as the rest of the project is; ruff must be installed beside this interpreter."""
    ruff = Path(sys.executable).parent / "ruff"
    # The folders are excluded from linting, but not from being readable.
    subprocess.run([ruff, "format", "--quiet", "--isolated", "--line-length=120", folder], check=True)
