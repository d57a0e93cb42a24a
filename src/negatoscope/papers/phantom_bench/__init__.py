"""The phantom bench: what the papers claim of their methods, asked where the truth is known to the pixel."""
