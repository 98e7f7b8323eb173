"""Everything beyond the paper: each folder here can be deleted without changing any other file."""
