"""Which runs train together, how many at a time, and when that pays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import torch

from taskmix.engine._fleet._encoder import STACKABLE
from taskmix.engine._fleet._evaluate import BLOCK
from taskmix.engine._fleet._weighing import can_be_stacked
from taskmix.engine._run import Run, encode, find_device, first_model
from taskmix.engine._source import tensors_of
from taskmix.files import free_memory
from taskmix.models import (
    CausalTransformer,
    Perceptron,
    TextConvolution,
    Transformer,
    WindowBiLSTM,
    is_linear,
    outline_of,
)
from taskmix.policies import Unchanging, steps_without_draws
from taskmix.tasks import WRITTEN, EncodedTasks, find_metric
from taskmix.training import input_groups
from taskmix.weighting import Equal, FixedWeights, Needs

MEMORY_SHARE = 0.5  # of what is free, for a chunk: with more, a guess that is off has no room
PARAMETER_COPIES = 8  # gradients, moments, the best ones, and what a checkpoint copies
NUMBERS_PER_OUTPUT = 4  # that a step holds for each one that a layer puts out: on the way back, too
NUMBERS_PER_PIECE = 26  # and feature and layer, that a pretrained network keeps for the way back
MOST_PIECES = 1 << 18  # of all members in a step: more of them train no faster, and take memory
PRODUCTS_A_SECOND = 1.5e14  # of a frozen base on a large GPU: to guess how long runs take
COMPILED_SECONDS = 100.0  # of runs, below which a compiler takes longer than it saves
# Parameters of all members, on the CPU: more fall out of the caches and gain nothing.
CACHED_PARAMETERS = 1 << 19
FEWEST_MEMBERS, MOST_MEMBERS = 4, 64  # on the CPU: fewer gain little, more wait for the last
WIDEST_LAYER = 256  # of a perceptron that is faster in a fleet on the CPU: wider ones fill a core


def can_join(run: Run) -> bool:
    """Whether a fleet can take the run.

    Its rows must not depend on its losses, nor may its weights on anything else of a step.
    """
    if why_alone(run) is not None:
        return False
    if run.weighting is not None:
        needs = run.weighting.needs
        return (
            run.policy is None and not needs.gradients_of_tasks and Needs.LOSSES_AFTER not in needs
        )
    if run.reward is not None and run.reward.needs_loss_after:
        return False
    return run.policy is None or isinstance(run.policy, Unchanging)


def why_alone(run: Run) -> str | None:
    """Why no fleet can take the run's model, in words; None where one can."""
    options = run.architecture
    if run.merge is not None:
        return "they are merged from others, and not trained"
    if type(options) not in STACKABLE:
        return f"{type(options).__name__} has no stacked form"
    for task in run.load():
        most = max(task.sizes.get(split, 0) for split in ("dev", "test"))
        if task.kind == "classification" and most * len(task.labels) > BLOCK:
            return "its answers are too many to keep, and are scored batch by batch"
    if isinstance(options, Transformer):
        if options.tune == "all":
            return "every weight of a pretrained model is trained, which takes a copy for each run"
        if options.adapters.dropout:
            return "its adapters have dropout"
        kinds = {task.kind in WRITTEN for task in run.load()}
        if len(kinds) > 1:
            return "some of its tasks are answered by classes and others by text"
        if any(find_metric(task.metric).needs == "answers" for task in run.load()):
            return "its metric is one of whole answers, which are written one model after another"
    return None


def family_of(run: Run) -> Hashable:
    """What runs that train together have in common."""
    optimization = replace(run.optimization, learning_rate=1.0, weight_decay=0.0)
    architecture: Any = run.architecture
    if isinstance(architecture, Transformer):  # of another rank: filled up with zeros
        architecture = replace(architecture, adapters=replace(architecture.adapters, rank=1))
    data = (run.source, architecture, run.device, run.precision)
    times = (run.steps, run.batch_size, run.evaluate_every, run.checkpoint_every, run.patience)
    return data, optimization, times, _pace(run)


def _pace(run: Run) -> str:
    """What a step has to wait for: members that wait for more would hold the others up."""
    weighting: Any = run.weighting
    if weighting is None:
        waits = run.reward is not None and steps_without_draws(run.reward) < run.steps
        return "drawn one by one" if waits else "drawn"
    if isinstance(weighting, Equal | FixedWeights):
        return "weighed ahead"
    tasks = len(run.tasks or run.load())
    return "weighed on the device" if can_be_stacked(weighting, tasks) else "weighed on the host"


def fleet_pays(runs: Sequence[Run]) -> bool:
    """Whether training together is faster than one by one, for any of these runs.

    On CUDA it always is. On the CPU it is for perceptrons up to a width, beyond which their matrices
    fill a core by themselves, and for the window BiLSTM, whose stacked form reads only the half of a
    window that counts; it is not for the text convolution (benchmarks/fleet.py has the figures).

    >>> from dataclasses import replace
    >>> from taskmix.models import Perceptron
    >>> run = Run(label="demo", source=DigitsSource(), architecture=Perceptron(), steps=2, seed=0)
    >>> fleet_pays([run]), fleet_pays([run, replace(run, seed=1)])
    (False, True)
    """
    return len(runs) > 1 and any(can_join(run) and _pays(run) for run in runs)


def _pays(run: Run) -> bool:
    options = run.architecture
    if find_device(run.device).type == "cuda":
        return True
    if isinstance(options, Perceptron):
        return max(options.hidden) <= WIDEST_LAYER
    return isinstance(options, WindowBiLSTM)


def company(runs: Sequence[Run], *, on_cpu: int, on_gpu: int) -> list[int]:
    """How many members a run's chunk has, for each of these runs, where memory is no matter.

    The chunks of a family are as many as there are processes at work, on the CPU or on GPUs.
    """
    families = [family_of(run) if can_join(run) else None for run in runs]
    counts = Counter(families)

    def members(run: Run, family: Hashable) -> int:
        if family is None:
            return 1
        cpu = find_device(run.device).type == "cpu"
        size = -(-counts[family] // max(on_cpu if cpu else on_gpu, 1))
        return min(size, MOST_MEMBERS) if cpu else size

    return [members(run, family) for run, family in zip(runs, families, strict=True)]


def plan_chunks(
    runs: Sequence[Run], numbers: Sequence[int], *, chunk: int | None, workers: int
) -> list[list[int]]:
    """Cuts runs of one family into chunks of like sizes; each is a list of places among `runs`."""
    # Slots are padded to the most in a chunk, so those with as many tasks go together.
    order = sorted(numbers, key=lambda number: -len(runs[number].tasks or runs[number].load()))
    size = chunk
    if size is None:
        encodings = len({runs[number].tasks for number in order})
        if isinstance(runs[order[0]].architecture, CausalTransformer):
            encodings = 1  # all members read the same rows of a table
        on_cpu = find_device(runs[order[0]].device).type == "cpu"
        gpus = max(1, torch.cuda.device_count())
        sharing = workers if on_cpu else -(-workers // gpus)  # the memory of one device
        size = fitting(runs[order[0]], encodings / len(order), sharing)
        # A GPU gains from company, but none should be idle.
        size = min(size, -(-len(order) // (workers if on_cpu else min(gpus, workers))))
    parts = [order[first : first + size] for first in range(0, len(order), size)]
    return [sorted(part, key=lambda number: _rate(runs[number])) for part in parts]


def _rate(run: Run) -> tuple[float, float]:
    """Members with the same one are one slice of the stacked parameters, for the optimiser."""
    return run.optimization.learning_rate, run.optimization.weight_decay


def fitting(run: Run, encodings: float = 1.0, workers: int = 1) -> int:
    """How many members like this one fit the device's memory, and pay.

    `encodings` is how many encodings of the tasks there are for each member.
    """
    tasks = encode(run)
    model = first_model(run, tasks)
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    needed = 4 * (PARAMETER_COPIES * parameters + encodings * _data(tasks))
    needed += _working_bytes(run, tasks)
    device = find_device(run.device)
    on_cuda = device.type == "cuda"
    free = torch.cuda.mem_get_info(device)[0] if on_cuda else free_memory()
    count = max(1, min(int(MEMORY_SHARE * free / workers / needed), _most_open()))
    if on_cuda and isinstance(run.architecture, Transformer):
        count = min(count, max(1, int(MOST_PIECES / _pieces(run, tasks))))
    if not on_cuda:
        count = min(
            count, max(FEWEST_MEMBERS, min(MOST_MEMBERS, CACHED_PARAMETERS // max(parameters, 1)))
        )
    return count


def compiling_pays(runs: Sequence[Run]) -> bool:
    """Whether these runs take so long that a compiler's minute is saved again.

    A compiled base is faster by a fifth (MiniLM) to more than a half (SmolLM2) on an H200.
    """
    seconds = 0.0
    for run in runs:
        options = run.architecture
        if not isinstance(options, Transformer) or find_device(run.device).type != "cuda":
            return False
        linear: list[Any] = list(filter(is_linear, outline_of(options.path).network.modules()))
        products = 4.0 * sum(each.weight.numel() for each in linear)
        seconds += run.steps * products * _pieces(run, encode(run)) / PRODUCTS_A_SECOND
        if seconds > COMPILED_SECONDS:
            return True
    return False


def _pieces(run: Run, tasks: EncodedTasks) -> float:
    """Of one member's rows in a step, about."""
    longest = 0.0
    for task in tasks:
        inputs: Any = task.splits["train"].inputs
        longest = max(longest, float(inputs.lengths.double().mean()))
    batches = 1 if run.weighting is None else len(input_groups(tasks))
    return batches * run.batch_size * longest


def _working_bytes(run: Run, tasks: EncodedTasks) -> float:
    """What one member holds in a step besides its parameters."""
    options = run.architecture
    if isinstance(options, Transformer):
        network: Any = outline_of(options.path).network
        width = int(network.config.num_hidden_layers) * outline_of(options.path).features
        numbers = NUMBERS_PER_PIECE * width * _pieces(run, tasks)
        return numbers * (4 if run.precision == "float32" else 2)
    if not isinstance(options, CausalTransformer):
        return 4 * NUMBERS_PER_OUTPUT * _working(run, tasks)
    # Of each place: what the layers keep for the way back, what one of them is at work on, and the
    # scores with their gradients.
    layer = 12 * options.width + 4 * options.inner
    each = (options.layers + 1) * layer + NUMBERS_PER_OUTPUT * tasks[0].outputs
    batches = 1 if run.weighting is None else len(input_groups(tasks))
    size = 4 if run.precision == "float32" else 2
    return size * batches * run.batch_size * options.context * each


def _working(run: Run, tasks: EncodedTasks) -> float:
    """Numbers that the layers of one member put out in a step."""
    options = run.architecture
    outputs = max(task.outputs for task in tasks)
    dimension = getattr(options, "dimension", 0)
    if tasks.vectors is not None:
        dimension = tasks.vectors.shape[1]
    each = 0.0
    if isinstance(options, Perceptron):
        each = tasks.features + sum(options.hidden)
    elif isinstance(options, WindowBiLSTM):
        places = 2 * (options.width + 1)
        each = places * (dimension + 14 * options.hidden) + sum(options.shared_layers)
    elif isinstance(options, TextConvolution):
        each = _length(tasks) * (dimension + 3 * options.filters * len(options.kernels))
    if run.weighting is None:
        return run.batch_size * (each + outputs)
    return run.batch_size * (len(input_groups(tasks)) * each + len(tasks) * outputs)


def _length(tasks: EncodedTasks) -> float:
    """The mean number of places of a row's texts, the longest task's."""
    longest = 0.0
    for task in tasks:
        inputs: Any = task.splits["train"].inputs
        for text in (inputs.first, inputs.second) if hasattr(inputs, "first") else (inputs,):
            longest = max(longest, len(text.ids) / max(len(text), 1) + 8)
    return longest


def _data(tasks: EncodedTasks) -> float:
    """Numbers that the rows and the word vectors take."""
    total = 0 if tasks.vectors is None else tasks.vectors.numel()
    seen: set[int] = set()
    for task in tasks:
        for split in task.splits.values():
            total += 4 * len(split)
            if id(split.inputs) not in seen:
                seen.add(id(split.inputs))
                total += sum(2 * part.numel() for part in tensors_of(split.inputs))
    return float(total)


def _most_open() -> int:
    """How many records may be held at once: each holds its lock file open."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return 1 << 12
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1 << 14
    if soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        soft = max(soft, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, soft // 2 - 64)
