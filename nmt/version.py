"""The version of nmt, where nothing has to import the Python API for it."""

__version__ = "0.1.0"
