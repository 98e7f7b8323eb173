"""Placeholders, tags and terms that arrive in a translation as they are."""
