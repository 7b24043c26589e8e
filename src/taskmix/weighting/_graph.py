"""What each loss was computed from: the tensors it trains besides the shared ones, and where the
tasks' graphs meet.

The gradient of one task costs least when only its own graph is walked and when everything it
trains is asked for at once, shared part and head. A graph knows what it trains, so the user need
not say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node

# Operations whose backward pass can run for many tasks at once, and gains by it: dense layers and what
# stands between them. Convolutions and recurrent layers are faster, or only possible, one by one.
BATCHED_OPERATIONS = frozenset(
    {
        "AddBackward0",
        "AddmmBackward0",
        "BmmBackward0",
        "CatBackward0",
        "CloneBackward0",
        "DivBackward0",
        "ExpandBackward0",
        "GeluBackward0",
        "LeakyReluBackward0",
        "MeanBackward1",
        "MmBackward0",
        "MulBackward0",
        "NativeDropoutBackward0",
        "NativeLayerNormBackward0",
        "NegBackward0",
        "PermuteBackward0",
        "ReluBackward0",
        "ReshapeAliasBackward0",
        "SigmoidBackward0",
        "SiluBackward0",
        "SoftmaxBackward0",
        "SplitBackward0",
        "SqueezeBackward1",
        "SubBackward0",
        "SumBackward1",
        "TBackward0",
        "TanhBackward0",
        "TransposeBackward0",
        "UnbindBackward0",
        "UnsafeViewBackward0",
        "UnsqueezeBackward0",
        "ViewBackward0",
    }
)


@dataclass(frozen=True)
class TaskGraph:
    """One loss's part of the graph."""

    leaves: list[Tensor]  # tensors it trains, without the shared ones
    entries: list[GradientEdge]  # where it enters what an earlier task has walked already
    touches_shared: bool  # whether it trains a shared tensor before any entry


@dataclass(frozen=True)
class Survey:
    """All losses' graphs."""

    tasks: list[TaskGraph]

    # Where all tasks enter the same part, which trains shared tensors alone and can be walked
    # backwards for all of them at once; empty where there is no such part.
    batched_entries: list[GradientEdge]

    @property
    def leaves(self) -> list[list[Tensor]]:
        return [task.leaves for task in self.tasks]

    @property
    def joint(self) -> bool:
        """Whether a walk through one task's graph may free what another still needs."""
        return any(task.entries for task in self.tasks)


def survey(
    losses: Sequence[Tensor], shared: Collection[Tensor], stops: Iterable[Node] = ()
) -> Survey:
    """Walks the graphs of all losses; nothing beyond a node of `stops` is looked at."""
    walk = _Walk({id(tensor) for tensor in shared}, set(stops))
    tasks = [walk.task(number, loss) for number, loss in enumerate(losses)]
    return Survey(tasks, [] if walk.stops else _common_entries(walk, tasks, losses))


@dataclass
class _Walk:
    shared: set[int]  # ids
    stops: set[Node]
    owners: dict[Node, int] = field(default_factory=dict)  # the first task that came by
    below: dict[Node, TaskGraph] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)  # of the operations below entries

    def task(self, number: int, loss: Tensor) -> TaskGraph:
        if loss.grad_fn is None:
            return TaskGraph([loss], [], touches_shared=False)
        leaves: dict[int, Tensor] = {}
        entries: dict[tuple[Node, int], GradientEdge] = {}
        touches = False
        waiting: list[tuple[Node, int]] = [(loss.grad_fn, 0)]
        while waiting:
            node, place = waiting.pop()
            owner = self.owners.get(node)
            if owner == number:
                continue
            if owner is not None:
                entries[node, place] = GradientEdge(node, place)
                leaves.update((id(leaf), leaf) for leaf in self._below(node).leaves)
                continue
            self.owners[node] = number
            for following, its_place in node.next_functions:
                variable = _variable(following)
                if variable is None:
                    if following is not None and following not in self.stops:
                        waiting.append((following, its_place))
                elif id(variable) in self.shared:
                    touches = True
                else:
                    leaves[id(variable)] = variable
        return TaskGraph(list(leaves.values()), list(entries.values()), touches)

    def _below(self, start: Node) -> TaskGraph:
        """What a node of an earlier task leads to; walked once, however many tasks enter there."""
        if start not in self.below:
            leaves: dict[int, Tensor] = {}
            seen: set[Node] = set()
            touches = False
            waiting = [start]
            while waiting:
                node = waiting.pop()
                if node in seen:
                    continue
                seen.add(node)
                self.names.add(node.name())
                for following, _ in node.next_functions:
                    variable = _variable(following)
                    if variable is None:
                        if following is not None and following not in self.stops:
                            waiting.append(following)
                    elif id(variable) in self.shared:
                        touches = True
                    else:
                        leaves[id(variable)] = variable
            self.below[start] = TaskGraph(list(leaves.values()), [], touches)
        return self.below[start]


def _variable(node: Node | None) -> Tensor | None:
    """The tensor whose gradient is collected at this node, if it is such a node."""
    if node is None or type(node).__name__ != "AccumulateGrad":
        return None
    found: Any = node.variable  # type: ignore[attr-defined]
    return found if isinstance(found, Tensor) else None


def _common_entries(
    walk: _Walk, tasks: Sequence[TaskGraph], losses: Sequence[Tensor]
) -> list[GradientEdge]:
    if len(tasks) < 2 or any(task.touches_shared for task in tasks[1:]):
        return []
    edges = {(edge.node, edge.output_nr) for edge in tasks[1].entries}
    for task in tasks[2:]:
        if {(edge.node, edge.output_nr) for edge in task.entries} != edges:
            return []
    if not edges or not walk.names <= BATCHED_OPERATIONS:
        return []
    if any(walk.below[node].leaves for node, _ in edges):
        return []
    # The first task walked through the entries without knowing them: walk it again up to them.
    first = _Walk(walk.shared, {node for node, _ in edges}).task(0, losses[0])
    return [] if first.touches_shared else list(tasks[1].entries)


def zeros_at(edge: GradientEdge) -> Tensor:
    """Zeros like what flows through an edge."""
    metadata: Any = edge.node._input_metadata[edge.output_nr]
    return torch.zeros(metadata.shape, dtype=metadata.dtype, device=metadata.device)
