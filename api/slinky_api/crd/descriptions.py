"""What models say of their fields: the text below each, read from the source.

Only schemas and the reference show it. pydantic can read it too (`use_attribute_docstrings`), but does so whenever a
class is made, which took each start of the operator a fifth of a second.
"""

import ast
import functools
import inspect
import itertools
import sys
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel

__all__ = ["described"]


def described(model: type[BaseModel], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Add to a model's JSON schema what its fields, and those of the models in it, say of themselves.

    Parameters
    ----------
    model
        The model.
    schema
        What pydantic makes of it, by alias.

    Returns
    -------
    dict
        The same schema with descriptions; one that a field was given by hand stays.
    """
    models = {one.__name__: one for one in _within(model, set())}
    definitions = {name: _with_texts(models.get(name), one) for name, one in schema.get("$defs", {}).items()}
    return {**_with_texts(model, schema), **({"$defs": definitions} if definitions else {})}


def _with_texts(model: type[BaseModel] | None, schema: Mapping[str, Any]) -> dict[str, Any]:
    if model is None or "properties" not in schema:
        return dict(schema)
    texts = {(field.alias or name): _texts(model).get(name) for name, field in model.model_fields.items()}
    properties = {
        name: {"description": text, **one} if (text := texts.get(name)) else one
        for name, one in schema["properties"].items()
    }
    return {**schema, "properties": properties}


def _within(kind: Any, seen: set[Any]) -> Iterator[type[BaseModel]]:
    """Every model that a type has in it, itself included."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        if kind in seen:
            return
        seen.add(kind)
        yield kind
        for field in kind.model_fields.values():
            yield from _within(field.annotation, seen)
    for part in get_args(kind):
        yield from _within(part, seen)


@functools.cache
def _texts(model: type[BaseModel]) -> dict[str, str]:
    """The text below each field, by its name; those of a class stand over those of its bases."""
    texts: dict[str, str] = {}
    for one in reversed(model.__mro__):
        if not issubclass(one, BaseModel) or one is BaseModel:
            continue
        body = _class_body(one)
        for field, text in itertools.pairwise(body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str() as words)):
                    texts[name] = inspect.cleandoc(words)
                case _:
                    pass
    return texts


def _class_body(model: type[BaseModel]) -> list[ast.stmt]:
    # A class that was made by a call, such as a generic one of given parameters, is in no source.
    return _classes(model.__module__).get(model.__qualname__, [])


@functools.cache
def _classes(module: str) -> dict[str, list[ast.stmt]]:
    """The body of each class at the top of a module; `inspect.getsource` would parse the whole file for each."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {one.name: one.body for one in tree.body if isinstance(one, ast.ClassDef)}
