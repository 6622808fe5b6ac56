"""Speed, compared with the time that cannot be avoided."""
