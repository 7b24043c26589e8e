"""Runs on a Ray cluster: one on this machine, or many machines.

The driver plans and never trains. It cuts the runs that are asked for into jobs, runs for a core or a
fleet for a GPU, keeps two for every place of the cluster in flight and draws more as they come back,
so that any number of runs may be queued. A worker that sees the study's folder writes there itself,
under the locks that any processes share it by; one that does not sends the record home as bytes.
What dies is tried again, from the last checkpoint that anybody has.
"""

from taskmix.engine._ray._cluster import choose_cluster_device, cluster
from taskmix.engine._ray._drive import Ray

__all__ = ["Ray", "choose_cluster_device", "cluster"]
