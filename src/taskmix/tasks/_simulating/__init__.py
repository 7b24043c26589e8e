"""Worlds in which the truth is known.

Tasks that are related to a real one as much as one likes, a rare class with a task that helps and one
that harms, and tasks of the digits whose relations follow from their definition.
"""
