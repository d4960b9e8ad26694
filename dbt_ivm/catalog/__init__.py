"""What is known about relations before planning: columns, keys, foreign keys, how changes are captured."""
