from .charts import coefficient_path as coefficient_path
from .charts import features as features
from .charts import front as front
from .charts import learning_curve as learning_curve
from .charts import plot as plot
from .charts import wins_and_losses as wins_and_losses
from .curve_charts import curves as curves
from .parts import theme as theme
