"""Where examinations come from."""
