from .interleaving import confidence_sequence as confidence_sequence
from .interleaving import interleaver as interleaver
from .offpolicy import PolicyValue as PolicyValue
from .offpolicy import evaluate_policy as evaluate_policy
from .ranker import OnlineRanker as OnlineRanker
from .simulation import simulate as simulate
from .users import ClickModel as ClickModel
from .users import user as user
