"""Negatoscope: automatic chest X-ray reporting by contrast."""

__version__ = "0.1.0"
