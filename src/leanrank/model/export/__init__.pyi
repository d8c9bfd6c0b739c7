from .formula import Formula as Formula
from .formula import formula_of as formula_of
from .hybrid import hybrid_weights as hybrid_weights
from .targets import TARGETS as TARGETS
from .targets import Options as Options
from .targets import export_model as export_model
