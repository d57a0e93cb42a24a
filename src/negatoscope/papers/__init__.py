"""The papers' tables: their published figures, their rows as recipes, and what comes out when they are trained here."""
