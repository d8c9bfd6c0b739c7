from leanrank.data.trec import Qrels as Qrels
from leanrank.data.trec import Run as Run
from leanrank.data.trec import dump_qrels as dump_qrels
from leanrank.data.trec import dump_run as dump_run
from leanrank.data.trec import load_qrels as load_qrels
from leanrank.data.trec import load_run as load_run

from .comparison import Comparison as Comparison
from .comparison import compare as compare
from .comparison import compare_values as compare_values
from .conventions import CONVENTIONS as CONVENTIONS
from .conventions import Convention as Convention
from .evaluation import Evaluation as Evaluation
from .evaluation import evaluate as evaluate
from .evaluation import evaluate_run as evaluate_run
from .measures import Measure as Measure
from .measures import parse_measures as parse_measures
from .measures import percent_zero as percent_zero
