"""What every page stands in: its templates, its policy, and the script that draws its charts."""

from taskmix.report._shell._payload import chart_payload, script_json
from taskmix.report._shell._render import (
    CHART_PACKAGES,
    PLAIN_PACKAGES,
    PURPOSE,
    content_policy,
    render_page,
    vega_runtime,
)

__all__ = [
    "CHART_PACKAGES",
    "PLAIN_PACKAGES",
    "PURPOSE",
    "chart_payload",
    "content_policy",
    "render_page",
    "script_json",
    "vega_runtime",
]
