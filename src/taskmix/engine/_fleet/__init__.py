"""Many models of one architecture as one batch on one device.

Every parameter has a leading member axis; a step of all members is a handful of batched matrix
products and one call of the optimiser, where a loop over models has hundreds of small calls for each.
Members differ in seed, tasks, order of rows, learning rate and kind of decision, and each gives what
it gives alone: the same first parameters, rows, draws, dropout (on the CPU), best evaluation, scores
and record. What is stacked and what a step does is in `_fleet.py`; the loop in `_train.py`.
"""

from taskmix.engine._fleet._plan import can_join, company, family_of, fleet_pays, why_alone
from taskmix.engine._fleet._unit import plan_units

__all__ = ["can_join", "company", "family_of", "fleet_pays", "plan_units", "why_alone"]
