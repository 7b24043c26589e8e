"""Options that several commands share, each declared once, and what they stand for."""
