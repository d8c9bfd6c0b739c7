from .contents import write_report as write_report
from .data_checks import Finding as Finding
from .data_checks import check_data as check_data
from .studies import study_of_model as study_of_model
from .studies import with_bands as with_bands
from .studies import with_path as with_path
from .studies import with_stability as with_stability
