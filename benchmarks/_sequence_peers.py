"""Peers of `sequences.py`, each run by the Python of its own environment: `PEER CASE FILE ROUNDS`.

FILE is an .npz with the data and the parameters to start from. Prints one JSON object: `seconds` of the
CPU for one EM iteration (the best of some), the log-likelihood before it, or what else a case is about.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from _common import best_of


def hmmlearn_hmm(data: Any, rounds: int) -> dict[str, float]:
    from hmmlearn.hmm import CategoricalHMM

    states = len(data["initial"])
    flat, lengths = data["values"][:, None], data["lengths"]

    def make() -> Any:
        model = CategoricalHMM(
            states, n_iter=1, implementation="scaling", init_params="", tol=-np.inf
        )
        model.startprob_, model.transmat_ = data["initial"], data["transition"]
        model.emissionprob_ = data["emission"]
        return model

    return {
        "seconds": best_of(rounds, lambda: make().fit(flat, lengths)),
        "log_likelihood": float(make().score(flat, lengths)),
    }


def dynamax_hmm(data: Any, rounds: int) -> dict[str, float]:
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    import jax

    jax.config.update("jax_enable_x64", True)
    from dynamax.hidden_markov_model import CategoricalHMM

    states, symbols = data["emission"].shape
    model = CategoricalHMM(states, 1, symbols)
    parameters, properties = model.initialize(
        jax.random.PRNGKey(0),
        initial_probs=jax.numpy.array(data["initial"]),
        transition_matrix=jax.numpy.array(data["transition"]),
        emission_probs=jax.numpy.array(data["emission"][:, None, :]),
    )
    emissions = jax.numpy.array(data["values"].reshape(len(data["lengths"]), -1, 1))
    state = model.initialize_m_step_state(parameters, properties)

    @jax.jit
    def step(parameters: Any, state: Any) -> Any:
        statistics, logs = jax.vmap(partial(model.e_step, parameters))(emissions)
        new, state = model.m_step(parameters, properties, statistics, state)
        return new, state, logs.sum()

    seconds = best_of(rounds, lambda: jax.block_until_ready(step(parameters, state)))
    marginal = jax.vmap(partial(model.marginal_log_prob, parameters))(emissions).sum()
    return {"seconds": seconds, "log_likelihood": float(marginal)}


def tomotopy_lda(data: Any, rounds: int) -> dict[str, Any]:
    import tomotopy

    topics, words = int(data["topics"]), data["train"].shape[1]
    model = tomotopy.LDAModel(k=topics, alpha=0.1, eta=0.01, seed=int(data["seed"]))
    for counts in data["train"]:
        model.add_doc([str(word) for word in np.repeat(np.arange(words), counts)])
    begin = time.process_time()
    model.train(200, workers=1)
    seconds = time.process_time() - begin
    known = [int(word) for word in model.used_vocabs]
    beta = np.full((topics, words), 1e-9)
    for topic in range(topics):
        beta[topic, known] += model.get_topic_word_dist(topic)
    beta /= beta.sum(axis=1, keepdims=True)
    np.savez(str(data["out"]), beta=beta, alpha=np.asarray(model.alpha, dtype=np.float64))
    return {"seconds": seconds}


CASES: dict[str, Callable[[Any, int], dict[str, Any]]] = {
    "hmmlearn/hmm": hmmlearn_hmm,
    "dynamax/hmm": dynamax_hmm,
    "tomotopy/lda": tomotopy_lda,
}

if __name__ == "__main__":
    case, path, count = sys.argv[1:]
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})
    print(json.dumps(CASES[case](np.load(path), int(count))))
