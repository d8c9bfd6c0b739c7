"""The report: one HTML file that shows a study, its models and its data."""

from typing import TYPE_CHECKING

from leanrank._lazy import attach

if TYPE_CHECKING:
    from leanrank.report.data_checks import Finding as Finding
    from leanrank.report.data_checks import check_data as check_data
    from leanrank.report.online_trial import write_trial as write_trial
    from leanrank.report.studies import study_of_model as study_of_model
    from leanrank.report.studies import with_bands as with_bands
    from leanrank.report.studies import with_path as with_path
    from leanrank.report.studies import with_stability as with_stability
    from leanrank.report.writing import write_report as write_report

__getattr__, __dir__, __all__ = attach(
    "leanrank.report",
    {
        "leanrank.report.data_checks": "Finding check_data",
        "leanrank.report.studies": "study_of_model with_bands with_path with_stability",
        "leanrank.report.online_trial": "write_trial",
        "leanrank.report.writing": "write_report",
    },
)
