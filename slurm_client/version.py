"""The version of the library, by the rules of semantic versioning; what a version promises is in README.md."""

__version__ = "0.2.0"
