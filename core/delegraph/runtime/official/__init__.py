"""What the official interpreter has beyond its documented methods, for programs that use it."""
