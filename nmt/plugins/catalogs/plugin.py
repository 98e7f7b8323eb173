"""Catalogs of programs: files with the strings of apps, in the formats of their platforms."""

from nmt.extensions import Add, DocumentEntry


def register(add: Add) -> None:
    here = "nmt.plugins.catalogs"
    add(DocumentEntry("fluent", f"{here}.fluent:Fluent", suffixes=(".ftl",)))
    add(DocumentEntry("php", f"{here}.php_arrays:Arrays", suffixes=(".php",)))
    add(DocumentEntry("properties", f"{here}.properties:Properties", suffixes=(".properties",)))
    add(DocumentEntry("rails", f"{here}.yaml_locales:Locale", suffixes=(".yaml", ".yml")))
    add(DocumentEntry("resx", f"{here}.resx:Resources", suffixes=(".resx", ".resw")))
    add(DocumentEntry("yaml", f"{here}.yaml_locales:YamlStrings", suffixes=()))
