"""EM of sequence generators against the packages that have one kind of them.

Seconds are of the CPU, one thread; ours and the peer's alternate, each the best of some rounds, the
same start and data, and both must report the same log-likelihood. LDA is judged by one evaluator:
half the words of held-out documents given the other half. Each peer runs in an environment of its own.

    python benchmarks/sequences.py [--quick] [--json] [--only stream] [--device cuda]
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from _common import ROOT, environment, report, row
from taskmix.sequences import (
    EMOptions,
    HiddenMarkov,
    HiddenMarkovParameters,
    LinearDynamics,
    LinearDynamicsParameters,
    Markov,
    Multinomial,
    SequenceMixture,
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
    python = environment(name, PACKAGES[name])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, **data)
        done = subprocess.run(
            [str(python), str(ROOT / "benchmarks" / "_sequence_peers.py"), f"{name}/{case}",
             str(path), str(rounds)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    return dict(json.loads(done.stdout.splitlines()[-1]))


def best_of(rounds: int, work: Callable[[], Any]) -> float:
    """The least CPU seconds of some rounds, after one that compiles."""
    work()
    seconds = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        seconds.append(time.process_time() - begin)
    return min(seconds)


def against(
    case: str, ours: Callable[[int], dict[str, float]], name: str, kind: str, data: Any, rounds: int
) -> dict[str, Any]:
    """A row of times in turns, after checking that both compute the same."""
    times: dict[str, list[float]] = {"ours": [], "peer": []}
    for _ in range(3):
        mine, theirs = ours(rounds), peer(name, kind, data, rounds)
        if not np.isclose(mine["log_likelihood"], theirs["log_likelihood"], rtol=1e-8):
            raise SystemExit(f"{case}: {mine} and {theirs} should have the same likelihood.")
        times["ours"].append(mine["seconds"])
        times["peer"].append(theirs["seconds"])
    mine_best, peer_best = min(times["ours"]), min(times["peer"])
    return row(case, mine_best, peer_best, name, "CPU s", ratio=peer_best / mine_best)


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

        def ours(rounds: int, states: int = states, data: Any = data) -> dict[str, float]:
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
            weights = np.ones((count, 1))

            def step() -> Any:
                found = options.expect(parameters, prepared, weights)
                return options.maximise(parameters, found.statistics), found.log_likelihood

            return {
                "seconds": best_of(rounds, step),
                "log_likelihood": float(step()[1].sum()),
            }

        rows += [
            against(f"HMM, {states} states", ours, name, "hmm", data, 3)
            for name in ("hmmlearn", "dynamax")
        ]
    return rows


def chains(
    generator: np.random.Generator, count: int, length: int, *, known: int | None = None
) -> tuple[Any, Any]:
    """Sequences of 10 symbols from 20 known Markov chains, and the task of each, of 100; the chains
    are those of the seed `known`, or drawn as well."""
    drawing = generator if known is None else np.random.default_rng(known)
    moves = drawing.dirichlet(np.full(10, 0.5), (20, 10)).cumsum(axis=2)
    shares = drawing.dirichlet(np.full(20, 0.1), 100).cumsum(axis=1)
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


def documents(seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Training and held-out counts, and the true topics."""
    generator = np.random.default_rng(seed)
    topics = generator.dirichlet(np.full(1000, 0.1), 20)

    def draw(count: int) -> NDArray[np.int64]:
        shares = generator.dirichlet(np.full(20, 0.1), count)
        return np.array([generator.multinomial(100, share @ topics) for share in shares])

    return draw(2000), draw(200), topics


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
        train, held, _ = documents(seed)
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


def linear_dynamics(quick: bool) -> list[dict[str, Any]]:
    """One EM iteration, states of 4, observations of 2, sequences of 50."""
    rows = []
    generator = np.random.default_rng(0)
    for count in (400,) if quick else (400, 4000):
        values = generator.normal(size=(count * 50, 2))
        system = {
            "first": np.zeros(4),
            "first_covariance": np.eye(4),
            "transition": 0.8 * np.eye(4) + 0.05 * generator.normal(size=(4, 4)),
            "noise": 0.4 * np.eye(4),
            "output": generator.normal(size=(2, 4)),
            "offset": np.zeros(2),
            "output_noise": 0.5 * np.eye(2),
        }
        data = {**system, "values": values, "lengths": np.full(count, 50)}

        def ours(
            rounds: int, values: Any = values, system: Any = system, count: int = count
        ) -> dict[str, float]:
            options = LinearDynamics(states=4, smoothing=0.0)
            prepared = options.prepare(Sequences(values, np.arange(count + 1) * 50))
            names = {"first": "initial", "first_covariance": "initial_covariance"}
            parts = {names.get(name, name): value[None] for name, value in system.items()}
            parameters = LinearDynamicsParameters(**parts, behind=prepared.behind)
            weights = np.ones((count, 1))

            def step() -> Any:
                found = options.expect(parameters, prepared, weights)
                return options.maximise(parameters, found.statistics), found.log_likelihood

            return {"seconds": best_of(rounds, step), "log_likelihood": float(step()[1].sum())}

        rows.append(against(f"LDS, {count} sequences", ours, "dynamax", "lds", data, 5))
    return rows


def scale(quick: bool) -> list[dict[str, Any]]:
    """Stochastic EM over a stream: seconds for a million symbols, and what memory it takes."""
    rows = []
    generator = np.random.default_rng(0)
    batch, length, symbols = 20_000, 50, 10
    sizes = (10**6, 10**7) if quick else (10**6, 10**7, 10**8)
    lengths, tasks = np.full(batch, length), np.arange(batch) % 1000
    warm = generator.integers(0, symbols, batch * length).astype(np.int32)
    SequenceMixture(Markov(), 20, symbols=symbols).partial_fit(warm, tasks, lengths=lengths)
    for total in sizes:
        model = SequenceMixture(Markov(), 20, symbols=symbols, random_state=0)
        spent = 0.0
        for _ in range(total // (batch * length)):
            values = generator.integers(0, symbols, batch * length).astype(np.int32)
            begin = time.process_time()
            model.partial_fit(values, tasks, lengths=lengths)
            spent += time.process_time() - begin
        rows.append(
            row(f"stochastic EM, {total:.0e} symbols", spent / total * 1e6, None, "-",
                "CPU s/M symbols")
        )  # fmt: skip
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append(row(f"peak memory after {total:.0e} symbols", peak, None, "-", "MiB"))
    sequences = flatten_sequences(
        generator.integers(0, symbols, 10**6).astype(np.int32), np.full(20_000, 50), symbols=symbols
    )
    for name, held in (
        ("HMM", _bytes(HiddenMarkov(states=20).prepare(sequences).trails)),
        ("Markov", _bytes(Markov().prepare(sequences))),
    ):
        rows.append(row(f"{name}, kept for a symbol", held / 10**6, None, "-", "bytes"))
    return rows


_STREAMED = """
import resource, sys, time
from pathlib import Path
from taskmix.sequences import Markov, SequenceMixture, SequenceStream
begin = time.process_time()
stream = SequenceStream(path=Path(sys.argv[1]))
symbols = stream.observations
read = time.process_time()
model = SequenceMixture(Markov(), 20, own=False, batch_size=20_000, max_iter=1, random_state=0)
model.fit(stream)
done = time.process_time()
held = stream.held_out
level = -model.score(held.sequences, held.tasks) / 51
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(symbols, read - begin, done - read, peak, level)
"""


def stream(quick: bool) -> list[dict[str, Any]]:
    """Files of a hundred tasks, fitted in one pass without being held: time and memory by size."""
    rows = []
    for total in (10**6, 10**7) if quick else (10**6, 10**7, 10**8):
        with tempfile.TemporaryDirectory() as folder:
            _write_chains(Path(folder), total)
            done = subprocess.run(
                [sys.executable, "-c", _STREAMED, folder],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
        symbols, read, fitted, peak, level = map(float, done.stdout.split())
        case = f"stream of {symbols:.0e} symbols"
        rows += [
            row(f"{case}, first reading", read / symbols * 1e6, None, "-", "CPU s/M symbols"),
            row(f"{case}, a pass of EM", fitted / symbols * 1e6, None, "-", "CPU s/M symbols"),
            row(f"{case}, peak memory", peak, None, "-", "MiB"),
            row(f"{case}, held-out surprise", level, None, "-", "nats/symbol"),
        ]
    return rows


def _write_chains(folder: Path, total: int) -> None:
    """A file for each of a hundred tasks, as `chains` draws them, part by part."""
    names = np.array(list("abcdefghij"))
    for seed in range(max(1, total // 10**6)):
        count = min(total, 10**6) // 50
        sequences, tasks = chains(np.random.default_rng([0, seed]), count, 50, known=0)
        words = names[sequences.values.reshape(count, 50)]
        order = np.argsort(tasks, kind="stable")
        for task, mine in zip(*np.unique(tasks[order], return_index=True), strict=True):
            upto = np.searchsorted(tasks[order], task, side="right")
            with (folder / f"task{task}.txt").open("a") as lines:
                lines.writelines(" ".join(each) + "\n" for each in words[order[mine:upto]])


def _bytes(prepared: Any) -> int:
    """Of the arrays that are kept, those of the sequences themselves among them."""
    total = 0
    for value in vars(prepared).values():
        if isinstance(value, Sequences):
            total += _bytes(value)
        elif isinstance(value, np.ndarray) and value.base is None:
            total += value.nbytes
        elif hasattr(value, "indptr"):
            total += value.data.nbytes + value.indices.nbytes + value.indptr.nbytes
    return total


def on_device(quick: bool, device: str) -> list[dict[str, Any]]:
    """One EM iteration of 50 states on ten million symbols, against our own one core."""
    import torch

    generator = np.random.default_rng(0)
    count, symbols, states = (20_000 if quick else 200_000), 10, 50
    values = generator.integers(0, symbols, count * 50).astype(np.int32)
    sequences = Sequences(values, np.arange(count + 1) * 50, symbols)
    times = {}
    for where in ("cpu", device):
        options = HiddenMarkov(states=states, device=where)
        prepared = options.prepare(sequences)
        weights = np.ones((count, 1))
        parameters = options.start(prepared, weights, np.random.default_rng(1))
        options.maximise(parameters, options.expect(parameters, prepared, weights).statistics)
        seconds = []
        for _ in range(3):
            begin = time.perf_counter()
            found = options.expect(parameters, prepared, weights)
            options.maximise(parameters, found.statistics)
            if where != "cpu" and torch.cuda.is_available():
                torch.cuda.synchronize()
            seconds.append(time.perf_counter() - begin)
        times[where] = min(seconds)
        likelihood = float(found.log_likelihood.sum()) if found.log_likelihood is not None else 0.0
        times[f"{where} level"] = likelihood
    if not np.isclose(times["cpu level"], times[f"{device} level"], rtol=1e-8):
        raise SystemExit(f"Both should have the same likelihood: {times}.")
    case = f"HMM, 50 states, {count * 50:.0e} symbols, {device}"
    ratio = times["cpu"] / times[device]
    return [row(case, times[device], times["cpu"], "our own core", "s", ratio=ratio)]


PARTS = {
    "hmm": hidden_markov,
    "markov": markov,
    "lda": lda,
    "lds": linear_dynamics,
    "scale": scale,
    "stream": stream,
}


def measure(quick: bool, device: str, only: str | None) -> list[dict[str, Any]]:
    if device != "cpu":
        return on_device(quick, device)
    parts = PARTS.values() if only is None else [PARTS[only]]
    return [each for part in parts for each in part(quick)]


if __name__ == "__main__":
    only = {"choices": tuple(PARTS), "help": "one part alone"}
    report("sequences", measure, __doc__ or "", device=True, options={"--only": only})
