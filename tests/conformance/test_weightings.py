"""What every weighting does, none excepted.

The problems are linear: every loss has a value and a gradient of our choosing, so that what a method
sees is known to the last bit. A `Player` runs it through the user's one line.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import taskmix.weighting as weighting
from taskmix.errors import InputError, OptionError, RecordError, ShapeError
from taskmix.weighting import (
    DBMTL,
    WEIGHTINGS,
    AnyWeighting,
    Balanced,
    Balancer,
    BanditMTL,
    Equal,
    FixedWeights,
    GroupDRO,
    HasOwnScale,
    Needs,
    RandomWeights,
)

TASKS, PARAMETERS, STEPS = 4, 30, 6


@dataclass(frozen=True)
class Case:
    method: AnyWeighting
    scale: str
    shift: str

    @property
    def name(self) -> str:
        return type(self.method).__name__

    @property
    def random(self) -> bool:
        """Whether the weights are drawn, or an order is."""
        return hasattr(self.method, "seed")


OPTIONS: dict[
    str, dict[str, Any]
] = {  # where the default cannot be, or does nothing in a few steps
    "fixed": {"weights": (1.0, 2.0, 3.0, 4.0)},
    "bandit": {"radius": 0.3},
    "dwa": {"steps_per_epoch": 2},
}
CASES = [
    Case(each.method(**OPTIONS.get(word, {})), each.scale, each.shift)
    for word, each in WEIGHTINGS.items()
]
every_method = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@dataclass(frozen=True)
class Problem:
    values: Tensor  # [step, task], the losses
    gradients: Tensor  # [step, task, parameter], those of the shared part

    @staticmethod
    def random(tasks: int = TASKS, steps: int = STEPS, seed: int = 0) -> Problem:
        generator = torch.Generator().manual_seed(seed)
        return Problem(
            torch.rand(steps, tasks, generator=generator, dtype=torch.float64) + 0.5,
            torch.randn(steps, tasks, PARAMETERS, generator=generator, dtype=torch.float64)
            * torch.linspace(0.5, 2, tasks, dtype=torch.float64)[:, None],
        )

    def permuted(self, order: Sequence[int]) -> Problem:
        return Problem(self.values[:, order], self.gradients[:, order])

    def scaled(self, factors: Tensor) -> Problem:
        return Problem(self.values * factors, self.gradients * factors[:, None])


class Linear(nn.Module):
    """Shared numbers and one of each task's own; its losses are what a problem says."""

    def __init__(self, tasks: int, dtype: torch.dtype, device: str = "cpu") -> None:
        super().__init__()
        self.shared = nn.Parameter(torch.zeros(PARAMETERS, dtype=dtype, device=device))
        self.heads = nn.ParameterList(
            nn.Parameter(torch.zeros((), dtype=dtype, device=device)) for _ in range(tasks)
        )

    def losses(self, values: Tensor, gradients: Tensor) -> tuple[Tensor, list[Tensor]]:
        code = self.shared * 1
        values, gradients = values.to(self.shared), gradients.to(self.shared)
        return code, [
            value + (code @ gradient - (code @ gradient).detach()) + (head - head.detach())
            for value, gradient, head in zip(values, gradients, self.heads, strict=True)
        ]


@dataclass
class Player:
    """A model and a balancer that take steps through a problem."""

    method: AnyWeighting
    tasks: int = TASKS
    dtype: torch.dtype = torch.float64
    device: str = "cpu"

    def __post_init__(self) -> None:
        self.model = Linear(self.tasks, self.dtype, self.device)
        self.balancer = Balancer(self.method, shared=[self.model.shared])

    def step(
        self, values: Tensor, gradients: Tensor, present: Sequence[bool] | None = None
    ) -> Balanced:
        code, losses = self.model.losses(values, gradients)
        self.model.zero_grad()
        chosen: list[Tensor | None] = list(losses)
        if present is not None:
            chosen = [loss if here else None for loss, here in zip(losses, present, strict=True)]
        needed = Needs.REPRESENTATION in self.balancer.needs
        info = self.balancer.backward(chosen, representation=code if needed else None)
        # A part of each loss is gained that depends on nothing but its gradient's direction.
        gained = 0.8 + 0.1 * nn.functional.normalize(gradients, dim=1)[:, 0]
        self.balancer.after_step(
            [loss.detach() * part.to(loss) for loss, part in zip(losses, gained, strict=True)]
        )
        return info

    def play(self, problem: Problem) -> Tensor:
        return torch.stack(
            [
                self.step(values, gradients).weights.double().cpu()
                for values, gradients in zip(problem.values, problem.gradients, strict=True)
            ]
        )


def for_tasks(method: AnyWeighting, tasks: int) -> AnyWeighting:
    return FixedWeights(weights=(1.0,) * tasks) if isinstance(method, FixedWeights) else method


def close(found: Tensor, expected: Tensor, tolerance: float = 1e-6) -> None:
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)


def test_every_public_method_is_in_the_suite() -> None:
    public = {
        name
        for name in weighting.__all__
        if hasattr(getattr(weighting, name), "init") and is_dataclass(getattr(weighting, name))
    }
    assert public == {case.name for case in CASES}


@dataclass(frozen=True)
class Plain(Equal):
    """A method of one's own that says nothing more than `Equal`."""


def test_a_method_of_ones_own_is_asked_for_what_it_declares() -> None:
    @dataclass(frozen=True)
    class Told(Plain, HasOwnScale[None]):
        needs = Needs.LOSSES | Needs.EPOCH | Needs.LOSSES_AFTER
        heard: list[str] = field(default_factory=list)

        def unscaled(self, state: None, losses: Tensor, present: Tensor | None = None) -> Tensor:
            return torch.full_like(losses, 0.5)

        def after_step(self, state: None, losses: Tensor) -> None:
            self.heard.append(f"after {losses.tolist()}")

        def end_epoch(self, state: None) -> None:
            self.heard.append("epoch")

    method = Told()
    balancer = Balancer(method, normalize=None)
    parameter = torch.ones(2, requires_grad=True)
    assert balancer.backward([parameter[0] * 1, parameter[1] * 2]).weights.tolist() == [0.5, 0.5]
    balancer.after_step(list(torch.tensor([0.25, 0.75])))
    balancer.end_epoch()
    assert method.heard == ["after [0.25, 0.75]", "epoch"]
    scaled = Balancer(method).backward([parameter[0] * 1, parameter[1] * 2])
    assert scaled.weights.tolist() == [1.0, 1.0]


def test_a_need_without_its_call_and_a_call_without_its_need_are_refused_in_words() -> None:
    class Deaf(Plain):
        needs = Needs.LOSSES | Needs.LOSSES_AFTER

    class Unheard(Plain):
        def end_epoch(self, state: None) -> None: ...

    class Unbalanced(Plain):
        needs = Needs.LOSSES | Needs.GRAMIAN

    with pytest.raises(OptionError, match="`Deaf` should have `after_step`"):
        Balancer(Deaf())
    with pytest.raises(OptionError, match=r"`Unheard` should say Needs\.EPOCH"):
        Balancer(Unheard())
    with pytest.raises(OptionError, match="`Unbalanced` should have `init` and `balance`"):
        Balancer(Unbalanced(), shared=nn.Linear(1, 1))


@every_method
def test_weights_sum_to_the_number_of_tasks(case: Case) -> None:
    weights = Player(case.method).play(Problem.random())
    close(weights.abs().sum(dim=1), torch.full((STEPS,), float(TASKS), dtype=torch.float64))


@every_method
def test_permuting_the_tasks_permutes_the_weights(case: Case) -> None:
    order = [2, 0, 3, 1]
    problem = Problem.random()
    if isinstance(case.method, FixedWeights):
        moved: AnyWeighting = FixedWeights(weights=(3.0, 1.0, 4.0, 2.0))
        close(Player(moved).play(problem), Player(case.method).play(problem)[:, order])
    elif case.random:  # in the mean over seeds

        def mean(played: Problem) -> Tensor:
            kind = type(case.method)
            runs = [Player(kind(seed=seed)).play(played) for seed in range(60)]  # type: ignore[call-arg]
            return torch.stack(runs).mean(dim=0)

        close(mean(problem.permuted(order)), mean(problem)[:, order], tolerance=0.3)
    else:
        found = Player(case.method).play(problem.permuted(order))
        close(found, Player(case.method).play(problem)[:, order])


@every_method
def test_scale_acts_as_documented(case: Case) -> None:
    problem = Problem.random()
    plain = Player(case.method).play(problem)
    common = Player(case.method).play(problem.scaled(torch.full((TASKS,), 7.0)))
    factors = torch.tensor([1.0, 10.0, 0.1, 3.0], dtype=torch.float64)
    each = Player(case.method).play(problem.scaled(factors))
    if case.scale == "counts":
        assert float((common - plain).abs().max()) > 1e-4
        return
    close(common, plain, tolerance=1e-5)
    if case.scale == "ignored":
        close(each, plain, tolerance=1e-5)
    elif case.scale == "inverse":
        inverse = plain / factors
        close(each, inverse * TASKS / inverse.abs().sum(dim=1, keepdim=True), tolerance=1e-5)
    else:
        assert float((each - plain).abs().max()) > 1e-4


@every_method
def test_shift_acts_as_documented(case: Case) -> None:
    problem = Problem.random()
    plain = Player(case.method).play(problem)
    shifted = Player(case.method).play(Problem(problem.values + 2.0, problem.gradients))
    if case.shift == "ignored":
        close(shifted, plain)
    else:
        assert float((shifted - plain).abs().max()) > 1e-4


@every_method
def test_equal_losses_and_gradients_get_equal_weights(case: Case) -> None:
    problem = Problem.random(tasks=1)
    equal = Problem(problem.values.expand(-1, TASKS), problem.gradients.expand(-1, TASKS, -1))
    if isinstance(case.method, RandomWeights):
        runs = [Player(RandomWeights(seed=seed)).play(equal) for seed in range(100)]
        close(torch.stack(runs).mean(dim=(0, 1)), torch.ones(TASKS).double(), tolerance=0.15)
        return
    weights = Player(for_tasks(case.method, TASKS)).play(equal)
    close(weights, torch.ones(STEPS, TASKS, dtype=torch.float64))


def balancer_for(method: AnyWeighting, encoder: nn.Module, tasks: int) -> Balancer:
    needed = Needs.REPRESENTATION in method.needs
    return Balancer(
        for_tasks(method, tasks), shared=encoder, representation=encoder if needed else None
    )


@every_method
def test_one_task_is_trained_as_without_a_balancer(case: Case) -> None:
    def trained(*, balanced: bool) -> Tensor:
        torch.manual_seed(0)
        encoder, head = nn.Sequential(nn.Linear(5, 4), nn.Tanh()), nn.Linear(4, 1)
        parameters = [*encoder.parameters(), *head.parameters()]
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        balancer = balancer_for(case.method, encoder, 1)
        inputs, targets = torch.randn(8, 5), torch.randn(8, 1)
        for _ in range(4):
            loss = ((head(encoder(inputs)) - targets) ** 2).mean()
            optimizer.zero_grad()
            if balanced:
                balancer.backward([loss])
            else:
                loss.backward()
            optimizer.step()
            balancer.after_step([loss.detach()]) if balanced else None
        return torch.cat([parameter.detach().flatten() for parameter in parameters])

    close(trained(balanced=True), trained(balanced=False))


@every_method
def test_gradients_are_those_of_the_weighted_sum_heads_included(case: Case) -> None:
    if isinstance(case.method, DBMTL):
        case = Case(DBMTL(memory=0.0), case.scale, case.shift)  # else its step is of running means
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 4))
    heads = nn.ModuleList(nn.Linear(4, 2) for _ in range(TASKS))
    parameters = [*encoder.parameters(), *heads.parameters()]
    balancer = balancer_for(case.method, encoder, TASKS)
    for _ in range(3):
        inputs, targets = torch.randn(8, 5), torch.randn(TASKS, 8, 2)

        def losses(inputs: Tensor = inputs, targets: Tensor = targets) -> list[Tensor]:
            code = encoder(inputs)
            return [
                nn.functional.mse_loss(head(code), target)
                for head, target in zip(heads, targets, strict=True)
            ]

        for parameter in parameters:
            parameter.grad = None
        weights = balancer.backward(losses()).weights
        found = [parameter.grad for parameter in parameters]
        total = torch.stack(losses()) @ weights
        for gradient, expected in zip(found, torch.autograd.grad(total, parameters), strict=True):
            assert gradient is not None
            torch.testing.assert_close(gradient, expected)


@every_method
@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_shows_in_every_gradient_and_leaves_the_state(
    case: Case, poison: float
) -> None:
    problem = Problem.random()
    player = Player(case.method)
    player.step(problem.values[0], problem.gradients[0])
    before = saved(player.balancer)
    values = problem.values[1].clone()
    values[2] = poison
    info = player.step(values, problem.gradients[1])
    assert not torch.isfinite(info.losses).all()
    assert player.model.shared.grad is not None
    assert player.model.shared.grad.isnan().all()
    assert_same_tree(saved(player.balancer)["state"], before["state"])
    after = player.step(problem.values[2], problem.gradients[2])
    assert after.weights.isfinite().all()


@every_method
def test_a_gradient_that_is_not_finite_is_not_hidden(case: Case) -> None:
    problem = Problem.random()
    player = Player(case.method)
    gradients = problem.gradients[0].clone()
    gradients[1, 3] = float("nan")
    player.step(problem.values[0], gradients)
    assert player.model.shared.grad is not None
    assert player.model.shared.grad.isnan().any()


@every_method
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float32, 1e-3), (torch.float64, 1e-9), (torch.bfloat16, 0.15)],
    ids=str,
)
def test_weights_are_the_same_in_every_precision(
    case: Case, dtype: torch.dtype, tolerance: float
) -> None:
    problem = Problem.random()
    rounded = Problem(problem.values.to(dtype).double(), problem.gradients.to(dtype).double())
    found = Player(case.method, dtype=dtype).play(rounded)
    close(found, Player(case.method).play(rounded), tolerance)


@every_method
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_a_gpu_gives_the_weights_of_a_cpu(case: Case) -> None:
    problem = Problem.random()
    for dtype, tolerance in ((torch.float64, 1e-7), (torch.float32, 1e-3)):
        found = Player(case.method, dtype=dtype, device="cuda").play(problem)
        close(found, Player(case.method, dtype=dtype).play(problem), tolerance)


def saved(balancer: Balancer) -> dict[str, Any]:
    """The state as a file would give it back."""
    file = io.BytesIO()
    torch.save(balancer.state_dict(), file)
    file.seek(0)
    tree: dict[str, Any] = torch.load(file, weights_only=True)
    return tree


def assert_same_tree(found: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert set(found) == set(expected)
        for key in expected:
            assert_same_tree(found[key], expected[key])
    elif isinstance(expected, Tensor):
        assert found.dtype == expected.dtype
        assert torch.equal(found, expected)
    else:
        assert found == expected


@every_method
@pytest.mark.parametrize("update_every", [1, 2])
def test_a_resumed_run_is_the_run_that_never_stopped(case: Case, update_every: int) -> None:
    problem = Problem.random(steps=8)

    def player() -> Player:
        made = Player(case.method)
        made.balancer = Balancer(case.method, shared=[made.model.shared], update_every=update_every)
        return made

    whole = player()
    expected = whole.play(problem)
    first = player()
    begun = first.play(Problem(problem.values[:4], problem.gradients[:4]))
    second = player()
    second.balancer.load_state_dict(saved(first.balancer))
    ended = second.play(Problem(problem.values[4:], problem.gradients[4:]))
    assert torch.equal(torch.cat([begun, ended]), expected)
    assert_same_tree(saved(second.balancer), saved(whole.balancer))


@every_method
def test_a_loaded_state_is_given_back_unchanged_before_the_first_step(case: Case) -> None:
    player = Player(case.method)
    player.play(Problem.random(steps=2))
    fresh = Player(case.method)
    fresh.balancer.load_state_dict(saved(player.balancer))
    assert_same_tree(saved(fresh.balancer), saved(player.balancer))


def test_a_state_of_another_method_is_refused_in_words() -> None:
    player = Player(BanditMTL())
    player.play(Problem.random(steps=1))
    with pytest.raises(RecordError, match="should be that of GroupDRO"):
        Player(GroupDRO()).balancer.load_state_dict(saved(player.balancer))


@every_method
def test_a_task_without_a_loss_gets_no_weight_or_is_refused_in_words(case: Case) -> None:
    problem = Problem.random()
    player = Player(case.method)
    present = [True, False, True, True]
    if Needs.EVERY_TASK in case.method.needs:
        with pytest.raises(InputError, match="Found none for 1"):
            player.step(problem.values[0], problem.gradients[0], present)
        return
    for step, pattern in enumerate([present, None, [False, True, True, False], None]):
        info = player.step(problem.values[step], problem.gradients[step], pattern)
        here = torch.tensor(pattern or [True] * TASKS)
        assert (info.weights[~here] == 0).all()
        assert info.losses[~here].isnan().all()
        assert info.weights.isfinite().all()
        close(info.weights.abs().sum(), here.sum().double())
        for head, there in zip(player.model.heads, here, strict=True):
            assert (head.grad is not None) == bool(there)


@every_method
def test_a_task_first_seen_later_is_welcome_or_refused_in_words(case: Case) -> None:
    problem = Problem.random()
    player = Player(for_tasks(case.method, TASKS - 1))

    def step(number: int, count: int) -> Balanced:
        code, losses = player.model.losses(problem.values[number], problem.gradients[number])
        named = dict(zip("abcd"[:count], losses[:count], strict=True))
        needed = Needs.REPRESENTATION in player.balancer.needs
        info = player.balancer.backward(named, representation=code if needed else None)
        player.balancer.after_step({name: loss.detach() * 0.9 for name, loss in named.items()})
        return info

    for number in range(3):
        step(number, TASKS - 1)
    if isinstance(case.method, FixedWeights):
        with pytest.raises(ShapeError, match="one number for each task"):
            step(3, TASKS)
        return
    for number in range(3, 6):
        info = step(number, TASKS)
        assert info.names == ("a", "b", "c", "d")
        assert info.weights.isfinite().all()
        close(info.weights.abs().sum(), torch.tensor(float(TASKS)).double())
    if not _numbers(player.balancer.state):  # nothing is remembered: as if all had been there
        close(info.weights, Player(case.method).play(problem)[5])


@every_method
def test_gradients_are_added_to_those_already_there(case: Case) -> None:
    problem = Problem.random()
    player, other = Player(case.method), Player(case.method)
    player.step(problem.values[0], problem.gradients[0])
    assert player.model.shared.grad is not None
    expected = player.model.shared.grad + 3.0
    other.model.zero_grad = lambda: None  # type: ignore[method-assign,assignment]
    for parameter in other.model.parameters():
        parameter.grad = torch.full_like(parameter, 3.0)
    other.step(problem.values[0], problem.gradients[0])
    assert other.model.shared.grad is not None
    close(other.model.shared.grad, expected)


def hostile(steps: int, seed: int = 0) -> Callable[[], Any]:
    """Zero gradients, identical and opposite tasks, exploding and vanishing ones, in turn."""
    generator = torch.Generator().manual_seed(seed)

    def steps_of() -> Any:
        for step in range(steps):
            values = torch.rand(TASKS, generator=generator) + 0.01
            gradients = torch.randn(TASKS, PARAMETERS, generator=generator)
            kind = step % 8
            if kind == 1:
                gradients[:] = 0
            elif kind == 2:
                gradients[:] = gradients[0]
                values[:] = values[0]
            elif kind == 3:
                values[1], gradients[1] = values[1] * 1e30, gradients[1] * 1e30
            elif kind == 4:
                gradients[0] = -gradients[1]
            elif kind == 5:
                gradients[2], values[2] = gradients[2] * 1e-30, values[2] * 1e-30
            elif kind == 6:
                gradients[3] = 0
                values[3] = 0
            elif kind == 7:
                gradients = gradients[:, :1] * torch.ones(1, PARAMETERS)  # rank one
            yield values, gradients

    return steps_of


def _numbers(state: Any) -> int:
    if isinstance(state, Tensor):
        return state.numel()
    if is_dataclass(state):
        return sum(_numbers(getattr(state, item.name)) for item in fields(state))
    return 0


@every_method
def test_hostile_steps_leave_weights_finite_and_the_state_its_size(case: Case) -> None:
    player = Player(case.method, dtype=torch.float32)
    size = 0
    for step, (values, gradients) in enumerate(hostile(120)()):
        info = player.step(values, gradients)
        assert info.weights.isfinite().all(), (step, info.weights)
        assert float(info.weights.abs().sum()) <= TASKS * (1 + 1e-4)
        assert player.model.shared.grad is not None
        assert player.model.shared.grad.isfinite().all()
        if step == 20:
            size = _numbers(player.balancer.state)
    assert _numbers(player.balancer.state) == size
