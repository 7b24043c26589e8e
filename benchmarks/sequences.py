"""EM of sequence generators against the packages that have one kind of them.

Seconds are of the CPU, one thread; ours and the peer's alternate, each the best of some rounds, the
same start and data, and both must report the same log-likelihood. LDA is judged by one evaluator:
half the words of held-out documents given the other half. Each peer runs in an environment of its own.

    python benchmarks/sequences.py [--quick] [--json] [--only hmm]
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from _common import ask, best_of, environment, report, row
from taskmix.sequences import (
    EMOptions,
    HiddenMarkov,
    HiddenMarkovParameters,
    Markov,
    Multinomial,
    Sequences,
    Settling,
    divide_sequences,
    fit_mixture,
    flatten_sequences,
    gather_corpus,
    make_bank,
)

PACKAGES = {
    "hmmlearn": ["hmmlearn==0.3.3"],
    "dynamax": ["dynamax==1.0.3"],
    "tomotopy": ["tomotopy==0.14.0"],
}


def peer(name: str, case: str, data: dict[str, Any], rounds: int) -> dict[str, Any]:
    """What a peer says of a case, in its own environment."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, **data)
        python = environment(name, PACKAGES[name])
        return dict(ask(python, "_sequence_peers.py", f"{name}/{case}", path, rounds))


def em_iteration(
    options: Any, parameters: Any, prepared: Any, count: int, rounds: int
) -> dict[str, float]:
    """Seconds of one EM iteration, and the log-likelihood before it."""
    weights = np.ones((count, 1))

    def step() -> Any:
        found = options.expect(parameters, prepared, weights)
        options.maximise(parameters, found.statistics)
        return found.log_likelihood

    return {"seconds": best_of(rounds, step), "log_likelihood": float(step().sum())}


def against(
    case: str, ours: Callable[[], dict[str, float]], name: str, kind: str, data: Any, rounds: int
) -> dict[str, Any]:
    """A row of times in turns, after checking that both compute the same."""
    turns = [(ours(), peer(name, kind, data, rounds)) for _ in range(3)]
    for mine, theirs in turns:
        if not np.isclose(mine["log_likelihood"], theirs["log_likelihood"], rtol=1e-8):
            raise SystemExit(f"{case}: {mine} and {theirs} should have the same likelihood.")
    best, peers = (min(each["seconds"] for each in side) for side in zip(*turns, strict=True))
    return row(case, best, peers, name, "CPU s", ratio=peers / best)


def hidden_markov(quick: bool) -> list[dict[str, Any]]:
    """One Baum-Welch iteration, 2,000 sequences of 50 among 10 symbols."""
    rows = []
    generator = np.random.default_rng(0)
    count, length, symbols = 2_000, 50, 10
    values = generator.integers(0, symbols, count * length)
    for states in (5, 50) if quick else (5, 20, 50):
        data = {
            "values": values,
            "lengths": np.full(count, length),
            "initial": generator.dirichlet(np.ones(states)),
            "transition": generator.dirichlet(np.ones(states), states),
            "emission": generator.dirichlet(np.ones(symbols), states),
        }

        options = HiddenMarkov(states=states, smoothing=0.0, halting=False)
        starts = np.arange(count + 1) * length
        prepared = options.prepare(Sequences(values.astype(np.int32), starts, symbols))
        parameters = HiddenMarkovParameters(
            data["initial"][None],
            data["transition"][None],
            np.zeros((1, states)),
            data["emission"][None],
            np.full(symbols, 1 / symbols),
        )
        ours = partial(em_iteration, options, parameters, prepared, count, 3)
        rows += [
            against(f"HMM, {states} states", ours, name, "hmm", data, 3)
            for name in ("hmmlearn", "dynamax")
        ]
    return rows


def chains(generator: np.random.Generator, count: int, length: int) -> tuple[Any, Any]:
    """Sequences of 10 symbols from 20 Markov chains, and the task of each, of 100."""
    moves = generator.dirichlet(np.full(10, 0.5), (20, 10)).cumsum(axis=2)
    shares = generator.dirichlet(np.full(20, 0.1), 100).cumsum(axis=1)
    tasks = generator.integers(0, 100, count)
    kinds = (shares[tasks] < generator.random((count, 1))).sum(axis=1).clip(0, 19)
    values = np.empty((count, length), np.int32)
    values[:, 0] = generator.integers(0, 10, count)
    for t in range(1, length):
        rows = moves[kinds, values[:, t - 1]]
        values[:, t] = (rows < generator.random((count, 1))).sum(axis=1).clip(0, 9)
    return Sequences(values.ravel(), np.arange(count + 1) * length, 10), tasks


def markov(quick: bool) -> list[dict[str, Any]]:
    """An EM iteration of 20 Markov generators in the middle of a fit, in symbols a second."""
    generator = np.random.default_rng(0)
    sequences, tasks = chains(generator, 2_000, 50)
    corpus = gather_corpus(sequences, tasks)
    bank = make_bank(Markov(), 20)
    chunks = bank.prepare(corpus.sequences)
    state, _ = fit_mixture(
        bank,
        corpus,
        EMOptions(iterations=10, tolerance=0.0),
        alpha=np.full(20, 0.1),
        starts=1,
        generator=generator,
    )
    known = divide_sequences(
        corpus, bank.log_likelihood(state.parameters, chunks), state.alpha, state.gamma
    )

    def generators_alone() -> Any:
        bank.log_likelihood(state.parameters, chunks)
        statistics, _ = bank.expect(state.parameters, chunks, known.responsibility)
        return bank.maximise(state.parameters, statistics)

    def whole() -> Any:
        likelihood = bank.log_likelihood(state.parameters, chunks)
        found = divide_sequences(corpus, likelihood, state.alpha, state.gamma)
        statistics, _ = bank.expect(state.parameters, chunks, found.responsibility)
        return bank.maximise(state.parameters, statistics)

    rows = []
    for name, work in (("generators alone", generators_alone), ("whole", whole)):
        speed = 100_000 / best_of(20, work) / 1e6
        rows.append(row(f"Markov EM, 20 generators, {name}", speed, 50.0, "goal", "M symbols/s"))
    return rows


def documents(seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Training and held-out counts."""
    generator = np.random.default_rng(seed)
    topics = generator.dirichlet(np.full(1000, 0.1), 20)

    def draw(count: int) -> NDArray[np.int64]:
        shares = generator.dirichlet(np.full(20, 0.1), count)
        return np.array([generator.multinomial(100, share @ topics) for share in shares])

    return draw(2000), draw(200)


def corpus_of(counts: NDArray[np.int64]) -> Any:
    task, word = np.nonzero(counts)
    words = flatten_sequences(word.astype(np.int32), np.ones(len(word), np.int64), symbols=1000)
    return gather_corpus(words, task, counts[task, word])


def perplexity(beta: Any, alpha: Any, held: NDArray[np.int64]) -> float:
    """Half the words of each document, foreseen from the other half."""
    generator = np.random.default_rng(0)
    halves = [np.zeros_like(held), np.zeros_like(held)]
    for place, counts in enumerate(held):
        words = generator.permutation(np.repeat(np.arange(len(counts)), counts))
        for half in (0, 1):
            halves[half][place] = np.bincount(words[half::2], minlength=len(counts))
    corpus = corpus_of(halves[0])
    logs = np.log(beta.T)[corpus.sequences.values]
    gamma = divide_sequences(
        corpus, logs, alpha, None, Settling(iterations=500, tolerance=1e-6)
    ).gamma
    shares = gamma / gamma.sum(axis=1, keepdims=True)
    order = np.array(corpus.tasks)
    likely = np.log(shares @ beta)
    return float(np.exp(-(halves[1][order] * likely).sum() / halves[1].sum()))


def lda(quick: bool) -> list[dict[str, Any]]:
    """2,000 documents of 100 words, 1,000 words, 20 topics."""
    ours: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    for seed in (1,) if quick else (1, 2, 3):
        train, held = documents(seed)
        corpus = corpus_of(train)
        bank = make_bank(Multinomial(smoothing=10.0), 20)

        def fit(seed: int = seed, corpus: Any = corpus, bank: Any = bank) -> Any:
            generator = np.random.default_rng(seed)
            return fit_mixture(
                bank,
                corpus,
                EMOptions(iterations=20, tolerance=0.0),
                alpha=np.full(20, 0.1),
                starts=1,
                generator=generator,
            )[0]

        if not ours:
            fit()  # compiles
        begin = time.process_time()
        state = fit()
        seconds = time.process_time() - begin
        beta = state.parameters[0].probabilities[:, :-1]
        beta = beta / beta.sum(axis=1, keepdims=True)
        ours.append((seconds, perplexity(beta, state.alpha, held)))
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "topics.npz"
            data = {"train": train, "topics": 20, "seed": seed, "out": str(out)}
            found = peer("tomotopy", "lda", data, 1)
            learned = np.load(out)
            level = perplexity(learned["beta"], learned["alpha"], held)
            theirs.append((found["seconds"], level))
    mine, other = np.mean(ours, axis=0), np.mean(theirs, axis=0)
    return [
        row("LDA, training", float(mine[0]), float(other[0]), "tomotopy", "CPU s",
            ratio=float(other[0] / mine[0])),
        row("LDA, held-out perplexity", float(mine[1]), float(other[1]), "tomotopy", "perplexity"),
    ]  # fmt: skip


PARTS = {
    "hmm": hidden_markov,
    "markov": markov,
    "lda": lda,
}


def measure(quick: bool, only: str | None) -> list[dict[str, Any]]:
    parts = PARTS.values() if only is None else [PARTS[only]]
    return [each for part in parts for each in part(quick)]


if __name__ == "__main__":
    only = {"choices": tuple(PARTS), "help": "one part alone"}
    report("sequences", measure, __doc__ or "", options={"--only": only})
