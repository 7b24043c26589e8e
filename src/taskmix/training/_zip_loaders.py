"""A batch of every task in each step, from the loaders that a loop has already.

Tasks have passes of their own: one that is used up starts over while the others go on. What is
remembered of a loader is the number of its pass, how many batches were taken of it, and the random
state that the pass began with, so that a resumed loop gets the batches that the first would have got.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from taskmix.errors import InputError, OptionError, RecordError

Ending = Literal["longest", "shortest"]


def zip_loaders(
    loaders: Mapping[str, Iterable[Any]], *, stop: Ending = "longest", steps: int | None = None
) -> ZippedLoaders:
    """Steps with a batch of every task, by name, for a loop whose weighting wants all tasks at once.

    A loop ends with the last loader that ends its first pass, or with the first one that does
    (`stop="shortest"`), and the next loop begins all passes anew. With `steps` it has so many, and the
    next one goes on where it stopped. A task that ends earlier starts over, and its sampler hears of it
    by `set_epoch`, as that of `DistributedDataParallel` has to.

    >>> for batches in zip_loaders({"a": [1, 2, 3], "b": [10, 20]}):
    ...     print(batches)
    {'a': 1, 'b': 10}
    {'a': 2, 'b': 20}
    {'a': 3, 'b': 10}
    """
    return ZippedLoaders(loaders, stop=stop, steps=steps)


class ZippedLoaders:
    """What `zip_loaders` gives; its `state_dict` resumes a loop where it stood.

    >>> loaders = {"a": [1, 2, 3], "b": [10, 20]}
    >>> zipped = zip_loaders(loaders, steps=4)
    >>> first = next(iter(zipped))
    >>> resumed = zip_loaders(loaders, steps=4)
    >>> resumed.load_state_dict(zipped.state_dict())
    >>> [list(batches.values()) for batches in resumed]
    [[2, 20], [3, 10], [1, 20]]
    """

    def __init__(
        self, loaders: Mapping[str, Iterable[Any]], *, stop: Ending, steps: int | None
    ) -> None:
        if not loaders or stop not in ("longest", "shortest") or (steps is not None and steps < 1):
            raise OptionError(
                "`zip_loaders` should get a loader for each task, `stop` as longest or shortest, and "
                f"`steps` of 1 or more. Found {len(loaders)} loaders, {stop!r} and {steps}."
            )
        self._passes = {name: _Passes(name, loader) for name, loader in loaders.items()}
        self._stop = stop
        self._steps = steps
        self._taken = 0  # steps of this loop
        self._resumed = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if not self._resumed:
            self._taken = 0
            if self._steps is None:
                for passes in self._passes.values():
                    passes.begin_anew()
        self._resumed = False
        while self._steps is None or self._taken < self._steps:
            batches = {name: passes.take() for name, passes in self._passes.items()}
            if self._is_over():
                return
            for name, passes in self._passes.items():
                if batches[name] is _ENDED:
                    batches[name] = passes.start_over()
                passes.count()
            self._taken += 1
            yield batches

    def __len__(self) -> int:
        """Steps of a loop; only where all loaders know their length, or `steps` was given."""
        if self._steps is not None:
            return self._steps
        lengths = [len(passes.loader) for passes in self._passes.values()]  # type: ignore[arg-type]
        return max(lengths) if self._stop == "longest" else min(lengths)

    def state_dict(self) -> dict[str, Any]:
        """Where the loop stands, as a tree of tensors, numbers and names."""
        return {
            "taken": self._taken,
            "loaders": {name: passes.state() for name, passes in self._passes.items()},
        }

    def load_state_dict(self, tree: Mapping[str, Any]) -> None:
        """The next loop goes on where the one that gave `tree` stood."""
        if list(tree["loaders"]) != list(self._passes):
            raise RecordError(
                f"The saved state should be that of loaders for {', '.join(self._passes)}. Found "
                f"{', '.join(tree['loaders'])}. Zip the loaders it was saved with."
            )
        for name, passes in self._passes.items():
            passes.restore(tree["loaders"][name])
        self._taken, self._resumed = int(tree["taken"]), True

    def _is_over(self) -> bool:
        if self._steps is not None:
            return False
        ended = [passes.ended for passes in self._passes.values()]
        return all(ended) if self._stop == "longest" else any(ended)


_ENDED = object()


class _Passes:
    """One loader, pass after pass."""

    def __init__(self, name: str, loader: Iterable[Any]) -> None:
        if iter(loader) is loader:
            raise InputError(
                f"The loader of task `{name}` should start over when it is used up. Found an iterator, "
                "which cannot. Give a DataLoader, a list, or an object whose `__iter__` begins anew."
            )
        self.name = name
        self.loader = loader
        self.ended = False  # whether a pass has ended in this loop
        self._epoch = 0
        self._taken = 0  # batches of this pass
        self._random: list[Tensor] = []  # states that the pass began with
        self._batches: Iterator[Any] | None = None

    def begin_anew(self) -> None:
        if self._batches is not None:
            self._epoch += 1
        self._batches, self._taken, self.ended = None, 0, False

    def take(self) -> Any:
        if self._batches is None:
            self._begin()
        batch = next(self._batches, _ENDED)  # type: ignore[arg-type]
        self.ended |= batch is _ENDED
        return batch

    def start_over(self) -> Any:
        """The first batch of the next pass."""
        self._epoch += 1
        self._taken = 0
        self._begin()
        batch = self.take()
        if batch is _ENDED:
            raise InputError(
                f"The loader of task `{self.name}` should have at least one batch. Found none. Leave "
                "the task out."
            )
        return batch

    def count(self) -> None:
        self._taken += 1

    def state(self) -> dict[str, Any]:
        own = getattr(self.loader, "state_dict", None)
        return {
            "epoch": self._epoch,
            "taken": self._taken,
            "ended": self.ended,
            "random": list(self._random),
            "own": None if own is None or not self._taken else own(),
        }

    def restore(self, tree: Mapping[str, Any]) -> None:
        self._epoch, self.ended = int(tree["epoch"]), bool(tree["ended"])
        self._taken, self._batches = 0, None
        if not tree["taken"]:
            return
        if tree["own"] is not None:  # a loader that can resume itself
            self.loader.load_state_dict(tree["own"])  # type: ignore[attr-defined]
            self._begin()
        else:
            # Orders are drawn when the first batch is: with the random state of that time.
            generator = getattr(self.loader, "generator", None)
            with torch.random.fork_rng(devices=[]):
                torch.set_rng_state(tree["random"][0])
                if generator is not None and len(tree["random"]) > 1:
                    generator.set_state(tree["random"][1])
                self._begin()
                for _ in range(tree["taken"]):
                    self.take()
        self._taken, self._random = int(tree["taken"]), list(tree["random"])

    def _begin(self) -> None:
        for listener in _epoch_listeners(self.loader):
            listener.set_epoch(self._epoch)
        generator = getattr(self.loader, "generator", None)
        self._random = [torch.get_rng_state()]
        if isinstance(generator, torch.Generator):
            self._random.append(generator.get_state())
        self._batches = iter(self.loader)


def _epoch_listeners(loader: Any) -> list[Any]:
    """The loader or the parts of it whose order depends on the number of the pass."""
    batch_sampler = getattr(loader, "batch_sampler", None)
    parts = [
        loader,
        getattr(loader, "sampler", None),
        batch_sampler,
        getattr(batch_sampler, "sampler", None),
        getattr(loader, "dataset", None),
    ]
    found = {id(part): part for part in parts if hasattr(part, "set_epoch")}
    return list(found.values())
