"""What must not break: kills, spoilt files, bad input, long streams."""
