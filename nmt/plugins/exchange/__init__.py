"""Models for other programs, and how far their translations are those of this one."""
