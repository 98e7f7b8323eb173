"""Lines to lines: long lines, several devices, Ray, and jobs that resume after they were killed."""
