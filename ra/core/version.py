"""The version of ra, as `ra --version` prints it and as servers and user agents report it."""

__version__ = "0.2.0"
