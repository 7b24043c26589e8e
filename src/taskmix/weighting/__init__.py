"""What each task's loss counts."""

from taskmix.weighting._aligned_mtl import AlignedMTL
from taskmix.weighting._balancer import Balancer
from taskmix.weighting._bandit_mtl import BanditMTL, BanditMTLState
from taskmix.weighting._cagrad import CAGrad
from taskmix.weighting._conflict_free import ConFIG
from taskmix.weighting._db_mtl import DBMTL
from taskmix.weighting._dynamic_weight_average import (
    DynamicWeightAverage,
)
from taskmix.weighting._equal import Equal
from taskmix.weighting._excess_mtl import ExcessMTL
from taskmix.weighting._fairgrad import FairGrad
from taskmix.weighting._famo import FAMO
from taskmix.weighting._fixed import FixedWeights
from taskmix.weighting._geometric_mean import GeometricMean
from taskmix.weighting._grad_norm import GradNorm
from taskmix.weighting._gradvac import GradVac
from taskmix.weighting._group_dro import GroupDRO
from taskmix.weighting._imtl_g import IMTLG
from taskmix.weighting._imtl_l import IMTLL
from taskmix.weighting._mgda import MGDA, MGDAUB
from taskmix.weighting._nash_mtl import NashMTL
from taskmix.weighting._pcgrad import PCGrad
from taskmix.weighting._random_weights import RandomWeights
from taskmix.weighting._smooth_tchebycheff import SmoothTchebycheff
from taskmix.weighting._step import Balanced
from taskmix.weighting._tchebycheff import Tchebycheff
from taskmix.weighting._uncertainty import Uncertainty
from taskmix.weighting._upgrad import UPGrad
from taskmix.weighting._weighting import (
    WEIGHTINGS,
    AnyGradientWeighting,
    AnyLossWeighting,
    AnyWeighting,
    Balance,
    CountsEpochs,
    GradientWeighting,
    HasOwnScale,
    LearnsAfterStep,
    LossWeighting,
    Needs,
    Registration,
)

__all__ = [
    "DBMTL",
    "FAMO",
    "IMTLG",
    "IMTLL",
    "MGDA",
    "MGDAUB",
    "WEIGHTINGS",
    "AlignedMTL",
    "AnyGradientWeighting",
    "AnyLossWeighting",
    "AnyWeighting",
    "Balance",
    "Balanced",
    "Balancer",
    "BanditMTL",
    "BanditMTLState",
    "CAGrad",
    "ConFIG",
    "CountsEpochs",
    "DynamicWeightAverage",
    "Equal",
    "ExcessMTL",
    "FairGrad",
    "FixedWeights",
    "GeometricMean",
    "GradNorm",
    "GradVac",
    "GradientWeighting",
    "GroupDRO",
    "HasOwnScale",
    "LearnsAfterStep",
    "LossWeighting",
    "NashMTL",
    "Needs",
    "PCGrad",
    "RandomWeights",
    "Registration",
    "SmoothTchebycheff",
    "Tchebycheff",
    "UPGrad",
    "Uncertainty",
]
