"""The file that is mapped into memory instead of read."""
