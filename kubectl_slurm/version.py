"""The version of the plugin: that of the operator it is released with."""

__version__ = "0.2.0"
