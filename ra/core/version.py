"""The version of ra, as servers, user agents and `ra --version` tell it."""

__version__ = "0.2.0"
