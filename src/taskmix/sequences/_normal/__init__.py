"""Normal distributions over vectors that may have gaps, and the generator that is made of them
alone.

`_distribution` has densities, expected moments and their prior, which every generator of vectors
uses; `_gaussian` is `Gaussian`, whose vectors are independent of each other.
"""

from taskmix.sequences._normal._distribution import (
    LOG_TWO_PI,
    Background,
    Covariance,
    Moments,
    background,
    check_covariance,
    draw_normals,
    expected_moments,
    find_gaps,
    learn_normals,
    log_densities,
    log_prior_of_normals,
    mixture_moments,
    stack_moments,
)
from taskmix.sequences._normal._gaussian import Gaussian, GaussianParameters, PreparedVectors

__all__ = [
    "LOG_TWO_PI",
    "Background",
    "Covariance",
    "Gaussian",
    "GaussianParameters",
    "Moments",
    "PreparedVectors",
    "background",
    "check_covariance",
    "draw_normals",
    "expected_moments",
    "find_gaps",
    "learn_normals",
    "log_densities",
    "log_prior_of_normals",
    "mixture_moments",
    "stack_moments",
]
