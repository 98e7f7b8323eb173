"""Everything beyond the paper: each folder here can be deleted without touching another file."""
