"""From corpora of any kind to a prepared one."""
