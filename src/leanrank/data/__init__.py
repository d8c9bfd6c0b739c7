"""What a ranking data set is, and how it is read, written, scaled, fetched and made up."""

from typing import TYPE_CHECKING

from leanrank._lazy import attach

if TYPE_CHECKING:
    from leanrank.data.clicks import ClickLog as ClickLog
    from leanrank.data.clicks import Preferences as Preferences
    from leanrank.data.clicks import click_preferences as click_preferences
    from leanrank.data.clicks import read_clicks as read_clicks
    from leanrank.data.formats import dump as dump
    from leanrank.data.formats import load as load
    from leanrank.data.frames import from_frame as from_frame
    from leanrank.data.frames import to_frame as to_frame
    from leanrank.data.letor import dump_letor as dump_letor
    from leanrank.data.letor import load_letor as load_letor
    from leanrank.data.logs.clicks import read_engine_clicks as read_engine_clicks
    from leanrank.data.logs.features import feature_log as feature_log
    from leanrank.data.logs.join import join_judgments as join_judgments
    from leanrank.data.logs.judgments import read_judgments as read_judgments
    from leanrank.data.normalize import GlobalMinMaxScaler as GlobalMinMaxScaler
    from leanrank.data.normalize import GlobalStandardScaler as GlobalStandardScaler
    from leanrank.data.normalize import QueryMinMaxScaler as QueryMinMaxScaler
    from leanrank.data.normalize import QueryRankScaler as QueryRankScaler
    from leanrank.data.normalize import QueryStandardScaler as QueryStandardScaler
    from leanrank.data.normalize import make_normalizer as make_normalizer
    from leanrank.data.normalize import normalizer_from_dict as normalizer_from_dict
    from leanrank.data.parquet import dump_parquet as dump_parquet
    from leanrank.data.parquet import load_parquet as load_parquet
    from leanrank.data.propensities import ClickWeights as ClickWeights
    from leanrank.data.propensities import click_weights as click_weights
    from leanrank.data.propensities import estimate_propensities as estimate_propensities
    from leanrank.data.public_sets import fetch as fetch
    from leanrank.data.ranking_data import RankingData as RankingData
    from leanrank.data.sample import load_sample as load_sample
    from leanrank.data.sample import sample_weights as sample_weights
    from leanrank.data.store import write_store as write_store
    from leanrank.data.streams import RankingStream as RankingStream
    from leanrank.data.streams import open_stream as open_stream
    from leanrank.data.synthetic import make_ranking as make_ranking
    from leanrank.data.synthetic import stream_ranking as stream_ranking
    from leanrank.data.synthetic_clicks import make_clicks as make_clicks

__getattr__, __dir__, __all__ = attach(
    "leanrank.data",
    {
        "leanrank.data.clicks": "ClickLog Preferences click_preferences read_clicks",
        "leanrank.data.formats": "dump load",
        "leanrank.data.frames": "from_frame to_frame",
        "leanrank.data.letor": "dump_letor load_letor",
        "leanrank.data.logs.clicks": "read_engine_clicks",
        "leanrank.data.logs.features": "feature_log",
        "leanrank.data.logs.join": "join_judgments",
        "leanrank.data.logs.judgments": "read_judgments",
        "leanrank.data.normalize": (
            "GlobalMinMaxScaler GlobalStandardScaler QueryMinMaxScaler QueryRankScaler "
            "QueryStandardScaler make_normalizer normalizer_from_dict"
        ),
        "leanrank.data.parquet": "dump_parquet load_parquet",
        "leanrank.data.propensities": "ClickWeights click_weights estimate_propensities",
        "leanrank.data.public_sets": "fetch",
        "leanrank.data.ranking_data": "RankingData",
        "leanrank.data.sample": "load_sample sample_weights",
        "leanrank.data.store": "write_store",
        "leanrank.data.streams": "RankingStream open_stream",
        "leanrank.data.synthetic": "make_ranking stream_ranking",
        "leanrank.data.synthetic_clicks": "make_clicks",
    },
)
