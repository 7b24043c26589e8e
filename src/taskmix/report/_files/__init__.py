"""Pages and charts as files: drawn, written whole, and known again as ours."""

from taskmix.report._files._chart import check_chart_path, write_chart
from taskmix.report._files._vega import convert
from taskmix.report._files._whole import is_our_page, write_whole

__all__ = ["check_chart_path", "convert", "is_our_page", "write_chart", "write_whole"]
