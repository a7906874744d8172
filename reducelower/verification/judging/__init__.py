"""What two sides gave, compared, and second looks at a difference."""
