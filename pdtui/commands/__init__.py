"""What a person can do: one table that feeds bindings, key bar, help and palette."""
