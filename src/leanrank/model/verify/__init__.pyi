from .engines import Agreement as Agreement
from .engines import compare_scores as compare_scores
from .engines import emulated_scores as emulated_scores
from .engines import verify_export as verify_export
from .engines import verify_logged as verify_logged
from .logged import read_logged as read_logged
