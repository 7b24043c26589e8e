from taskmix.adviser import Advised as Advised
from taskmix.adviser import advise as advise
from taskmix.engine import load_model as load_model
from taskmix.estimators import MultitaskClassifier as MultitaskClassifier
from taskmix.estimators import MultitaskRegressor as MultitaskRegressor
from taskmix.plans import Plan as Plan
from taskmix.records import Study as Study
from taskmix.tasks import TaskSet as TaskSet
from taskmix.tasks import check_tasks as check_tasks
from taskmix.tasks import load_tasks as load_tasks
from taskmix.training import TrainedModel as TrainedModel
from taskmix.training import train as train

__version__: str
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
