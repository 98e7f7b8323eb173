"""What lies on disk: files and folders that are whole or not there, and readers for what strangers hand us."""
