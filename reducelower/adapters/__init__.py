"""What operators need at the boundaries between their versions."""
