"""taskmix: one model, several tasks, one budget.

    import taskmix

    advised = taskmix.advise("reviews/", budget="20m")
    advised.plan().save("plan.json")

The names below are imported when they are first used, so that `import taskmix` costs nothing (not even
`typing`: a signal in the first milliseconds should find the program listening); what they are is said to
type checkers by `__init__.pyi`.
"""

__version__ = "0.1.0"

__all__ = [
    "Advised",
    "MultitaskClassifier",
    "MultitaskRegressor",
    "Plan",
    "Study",
    "TaskSet",
    "TrainedModel",
    "advise",
    "check_tasks",
    "load_model",
    "load_tasks",
    "train",
]

_PLACES = {
    "Advised": ("taskmix.adviser", "Advised"),
    "MultitaskClassifier": ("taskmix.estimators", "MultitaskClassifier"),
    "MultitaskRegressor": ("taskmix.estimators", "MultitaskRegressor"),
    "Plan": ("taskmix.plans", "Plan"),
    "Study": ("taskmix.records", "Study"),
    "TaskSet": ("taskmix.tasks", "TaskSet"),
    "TrainedModel": ("taskmix.training", "TrainedModel"),
    "advise": ("taskmix.adviser", "advise"),
    "check_tasks": ("taskmix.tasks", "check_tasks"),
    "load_model": ("taskmix.engine", "load_model"),
    "load_tasks": ("taskmix.tasks", "load_tasks"),
    "train": ("taskmix.training", "train"),
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, wanted = _PLACES[name]
    return getattr(import_module(module), wanted)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
