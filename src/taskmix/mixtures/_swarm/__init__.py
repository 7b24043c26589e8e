"""Swarms: many small models, each trained on its own mixture of the domains."""
