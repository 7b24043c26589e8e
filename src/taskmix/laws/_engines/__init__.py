"""Other programs that find forms, Operon and gplearn; their formulas are translated into ours."""

from taskmix.laws._engines._gplearn import GplearnEngine
from taskmix.laws._engines._operon import OperonEngine

__all__ = ["GplearnEngine", "OperonEngine"]
