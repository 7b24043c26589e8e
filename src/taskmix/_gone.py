"""What earlier versions had and this one has not, each with the sentence that says what to use now.

The program refuses an option or a command of the table with that sentence, and so does a package one of
its names. Commands and options stand here as they were typed, without `taskmix`; names under a package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

COMMANDS: dict[str, str] = {
    "reproduce": "Published experiments run from the repository: `python -m papers --list`.",
    "simulate": "Use `taskmix laws simulate`; tasks that it cannot read "
    "by itself are read by `taskmix.tasks.load_tasks` and given to `taskmix.tasks.simulate_tasks`.",
    "watch": "Use `taskmix report STUDY --live`: it shows the page of a study while it runs.",
}

OPTIONS: dict[tuple[str, str], str] = {  # (command, option)
    **dict.fromkeys(
        [("advise", "--train-steps"), ("advise", "--train-time")],
        "`--steps` says how long candidates are trained; what is delivered is trained as long as their "
        "learning curves say.",
    ),
    ("laws", "--searcher"): "`taskmix laws` always searches by itself; formulas that "
    "Operon or gplearn found are judged with `--formula`.",
    ("laws simulate", "--labels"): "Use `labels` of `taskmix.tasks.simulate_tasks` in Python.",
    ("laws simulate", "--positives"): "Use `taskmix.tasks.simulate_imbalanced` in Python.",
    ("laws simulate", "--real-samples"): "Use `real_samples` of `taskmix.tasks.simulate_tasks` in "
    "Python.",
    ("mix", "--domain-features"): "Train a few runs that use the new domain, and give them "
    "in the table: a domain without runs is no longer guessed.",
    ("mix", "--run-tokens"): "`--repeat-value` takes the number R itself, 15.4 as "
    "published: it is no longer learned from runs.",
    ("sequences fit", "--stream"): "Data that fit into memory are learned in batches with "
    "--batch-size; for larger files see examples/sequence_stream.py.",
    ("train", "--best"): "All tasks are served by the parameters of the best mean "
    "dev score. Leave `--best` out.",
    ("transfer", "--compare"): "Estimates by gradients are gone, and so is comparing "
    "them with training.",
    ("transfer", "--estimate"): "Estimates by gradients are gone: train fewer subsets "
    "with `--shrink`, or a study of short runs for `--prior-study`.",
}

NAMES: dict[str, dict[str, str]] = {  # package: name
    "adviser": {
        "GuessedMixture": "`taskmix.mixtures.forecast_mixtures` learns from "
        "mixtures that were trained.",
        "guess_mixtures": "`taskmix.mixtures.forecast_mixtures` learns from "
        "mixtures that were trained.",
    },
    "engine": {
        "Launched": "It is `TorchrunExecutor` now.",
        "StartingOver": "It is `RestartingExecutor` now.",
        "scores_of_mixtures": "`taskmix.mixtures.forecast_mixtures` learns from "
        "mixtures that were trained.",
        "undescribe": "It is `from_spec` now.",
    },
    "laws": {
        "GplearnEngine": "Use `LawRegressor()`, which searches by itself; formulas "
        "of gplearn are judged by `fit_formula`.",
        "OperonEngine": "Use `LawRegressor()`, which searches by itself; formulas "
        "of Operon are judged by `fit_formula`.",
    },
    "mixtures": {
        "BoostedTrees": "`benchmarks/mixtures.py` in the repository has LightGBM as a peer.",
        "CarryOver": "It is `RankAgreement` now.",
        **dict.fromkeys(
            ["MeanExplained", "explain_mean"], "`rank_agreement` has the mean beside its metrics."
        ),
        **dict.fromkeys(
            [
                "DomainFeatures",
                "HowFar",
                "LeftOutDomain",
                "domain_features",
                "encoder_features",
                "features_of_folder",
                "forecast_with_new_domain",
                "how_far",
                "read_features",
                "write_features",
            ],
            "Train a few runs that use the new domain.",
        ),
        "LearnedRepetition": "`MixtureLimits(repetition=...)` takes the number R; 15.4 "
        "is the published one.",
        "learn_repetition": "`MixtureLimits(repetition=...)` takes the number R; 15.4 "
        "is the published one.",
        "MergeCost": "`apply_changes` merges domains; a merge is exact in shares.",
        "merge_cost": "`apply_changes` merges domains; a merge is exact in shares.",
        **dict.fromkeys(
            [
                "MixtureSearch",
                "SearchRound",
                "search_mixtures",
            ],
            "Train `first_mixtures`, then `next_mixtures` until `is_enough`.",
        ),
        "MixturesDocument": "It is `MixtureReport` now.",
        "ShareCurve": "`lessons.predict(...)` says what any mixture gives.",
        "StackedTables": "Join the files of runs before they are read, with the "
        "same names of domains.",
        "stack_tables": "Join the files of runs before they are read, with the "
        "same names of domains.",
        "TwoSizes": "Give the sizes of models in `sizes` (`size_column=`).",
        "suspect_two_sizes": "Give the sizes of models in `sizes` (`size_column=`).",
        "carry_over": "It is `rank_agreement` now.",
        "describe_changes": "`apply_changes` applies a change; docs/mixtures.md says "
        "what of it is exact.",
        "settle_with": "It is `choose_large_runs` now.",
    },
    "models": {
        "AdversarialSharing": "It is `papers.adversarial.AdversarialSharing` in the repository.",
        "DARE": "Use `TaskArithmetic` or `WeightAverage`.",
        "TIES": "Use `TaskArithmetic` or `WeightAverage`.",
        "SharedCode": "It is `papers.adversarial.SharedCode` in the repository.",
    },
    "plans": {
        "retuned": "It is `with_tuning` now.",
    },
    "records": {
        "named_with": "Runs of version 0.1 are read with taskmix 0.1; nothing "
        "is named with its label any more.",
    },
    "sequences": {
        "MixtureDocument": "It is `SequenceReport` now.",
        **dict.fromkeys(
            [
                "RowColumns",
                "SequenceSource",
                "SequenceStream",
                "SourceWithSample",
                "StreamWork",
            ],
            "Read the file in batches and give each to "
            "`SequenceMixture.partial_fit`, as examples/sequence_stream.py does.",
        ),
    },
    "tasks": {
        "BanditOptimum": "It is `papers.bandit_world.BanditOptimum` in the repository.",
        "MultitaskBandit": "It is `papers.bandit_world.MultitaskBandit` in the repository.",
    },
    "training": {
        "Keep": "All tasks of a run are served by the best mean dev score: leave `keep` out.",
        "Watch": "It is `BestTracker` now.",
        "Watches": "All tasks of a run are served by the best mean dev score: use `BestTracker`.",
        "best_state": "The best state of a run is one state: use what "
        "`RunFolder.best()` gives as it is.",
        "served_together": "One state serves all tasks of a run: nothing is to be grouped.",
    },
    "transfer": {
        "ABSTAIN": "It is `papers.label_model.ABSTAIN` in the repository.",
        "CompanySurrogate": "Use `LinearSurrogate`, and `effect_of_company` for what "
        "any other task does.",
        **dict.fromkeys(
            [
                "EstimateComparison",
                "EstimatedTarget",
                "GradientOptions",
                "estimate_by_gradients",
            ],
            "Estimates by gradients are gone: use `study_transfer` "
            "with `LearningOptions(shrink=True)`, or a study of shorter runs as `prior`.",
        ),
        **dict.fromkeys(
            [
                "KernelSMSurrogate",
                "KernelSurrogate",
                "PairSurrogate",
            ],
            "Use `LinearSurrogate`.",
        ),
        "choose_surrogate": "Use `fit_linear_surrogate`, or `fit_shrunken_surrogates` "
        "where runs are few.",
        "compare_surrogates": "`extrapolate` tries a surrogate on held-out subsets.",
        "fit_company_surrogate": "`fit_linear_surrogate` fits the effects, and "
        "`effect_of_company` says what any other task does.",
        "fit_constant_surrogate": "R² of `extrapolate` compares with the mean of all subsets.",
        "fit_kernel_sm_surrogate": "Use `fit_linear_surrogate`, which predicts as well.",
        "fit_kernel_surrogate": "Use `fit_linear_surrogate`.",
        "fit_pair_surrogate": "Use `fit_linear_surrogate`.",
        "fit_label_model": "It is `papers.label_model.fit_label_model` in the repository.",
        "group_greedily": "Use `group_tasks`.",
        "group_spectrally": "Use `group_tasks`.",
        "majority_vote": "It is `papers.label_model.majority_vote` in the repository.",
        "select_by_prefixes": "Measure the rows of `best_prefixes` and hand them to "
        "`choose_prefix`.",
        "select_least_loss": "`select_below` finds the subset of least predicted loss.",
    },
}


def gone_command(words: Sequence[str]) -> str | None:
    """The sentence for what was typed after `taskmix`, where it begins with a command that is gone."""
    for command, instead in COMMANDS.items():
        parts = command.split()
        if list(words[: len(parts)]) == parts:
            return f"`taskmix {command}` is gone. {instead}"
    return None


def gone_option(command: str, option: str) -> str | None:
    """The sentence for an option that `command`, or the group it is in, does not have any more."""
    for name in (command, command.split(" ")[0]):
        if instead := OPTIONS.get((name, option)):
            return f"`{option}` of `taskmix {name}` is gone. {instead}"
    return None


def refuse_gone_names(module: str) -> Callable[[str], object]:
    """The `__getattr__` of a package: names that are gone are refused with their sentence."""
    gone = NAMES.get(module.partition(".")[2], {})

    def look_up(name: str) -> object:
        if name not in gone:
            raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)
        sentence = f"`{module}.{name}` is gone. {gone[name]}"
        # `from package import name` would swallow an AttributeError and its sentence.
        if sys._getframe(1).f_globals.get("__name__") == "importlib._bootstrap":
            raise ImportError(sentence, name=module)
        raise AttributeError(sentence, name=name)

    return look_up
