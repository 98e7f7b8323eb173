"""Catalogs of programs: files with the strings of apps, in the formats of their platforms."""

from nmt.extensions import Add, DocumentEntry


def register(add: Add) -> None:
    here = "nmt.plugins.catalogs"
    android = DocumentEntry(
        "android", f"{here}.android:Android", suffixes=(), shared_suffixes=(".xml",)
    )
    add(android)
    add(DocumentEntry("arb", f"{here}.json_catalogs:Arb", suffixes=(".arb",)))
    # Their files have the suffix .json, so users name these formats.
    add(DocumentEntry("chrome", f"{here}.json_catalogs:ChromeMessages", suffixes=()))
    add(DocumentEntry("i18next", f"{here}.json_catalogs:I18next", suffixes=()))
    add(DocumentEntry("strings", f"{here}.apple_strings:AppleStrings", suffixes=(".strings",)))
    add(DocumentEntry("stringsdict", f"{here}.plists:StringsDict", suffixes=(".stringsdict",)))
    add(DocumentEntry("xcstrings", f"{here}.xcstrings:StringCatalog", suffixes=(".xcstrings",)))
    add(DocumentEntry("fluent", f"{here}.fluent:Fluent", suffixes=(".ftl",)))
    # Most files with these suffixes are programs and configuration.
    php = DocumentEntry("php", f"{here}.php_arrays:Arrays", suffixes=(), shared_suffixes=(".php",))
    add(php)
    add(DocumentEntry("properties", f"{here}.properties:Properties", suffixes=(".properties",)))
    rails = DocumentEntry(
        "rails", f"{here}.yaml_locales:Locale", suffixes=(), shared_suffixes=(".yml", ".yaml")
    )
    add(rails)
    add(DocumentEntry("resx", f"{here}.resx:Resources", suffixes=(".resx", ".resw")))
    add(DocumentEntry("yaml", f"{here}.yaml_locales:YamlStrings", suffixes=()))
