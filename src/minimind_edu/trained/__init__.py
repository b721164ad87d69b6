"""What was trained for the book, and how: programs, stored runs and small models."""
