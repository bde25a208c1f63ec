"""What ends a conversion: an input that cannot be read, or is none of Slinky's."""

from __future__ import annotations


class ConversionError(Exception):
    """The input cannot be converted; the text is one line with the file and, where there is one, the key."""


class UnreadableInput(ConversionError):
    """A file is missing, is no YAML, or is beyond a bound."""


class NotOfSlinky(ConversionError):
    """The input is neither values of Slinky's charts nor objects of its kinds."""


class WrongType(ConversionError):
    """A key has a value of another type than Slinky's charts read, for example a text instead of a list."""


class SeveralClusters(ConversionError):
    """Objects of several Clusters do not fit into one values file."""
