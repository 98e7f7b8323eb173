"""`nmt runs`, `nmt plugins` and shell completion."""
