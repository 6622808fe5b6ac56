"""Speed, against what cannot be avoided."""
