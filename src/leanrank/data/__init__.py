"""What a ranking data set is, and how it is read, written, scaled, fetched and made up."""

from typing import TYPE_CHECKING

from leanrank._lazy import attach

if TYPE_CHECKING:
    from leanrank.data.clicks.click_log import ClickLog as ClickLog
    from leanrank.data.clicks.click_log import Preferences as Preferences
    from leanrank.data.clicks.click_log import click_preferences as click_preferences
    from leanrank.data.clicks.click_log import read_clicks as read_clicks
    from leanrank.data.clicks.propensities import ClickWeights as ClickWeights
    from leanrank.data.clicks.propensities import click_weights as click_weights
    from leanrank.data.clicks.propensities import estimate_propensities as estimate_propensities
    from leanrank.data.clicks.synthetic import make_clicks as make_clicks
    from leanrank.data.formats import dump as dump
    from leanrank.data.formats import load as load
    from leanrank.data.letor.files import dump_letor as dump_letor
    from leanrank.data.letor.files import load_letor as load_letor
    from leanrank.data.logs.clicks import read_engine_clicks as read_engine_clicks
    from leanrank.data.logs.features import feature_log as feature_log
    from leanrank.data.logs.join import join_judgments as join_judgments
    from leanrank.data.logs.judgments import read_judgments as read_judgments
    from leanrank.data.ranking_data import RankingData as RankingData
    from leanrank.data.scaling.normalizers import GlobalMinMaxScaler as GlobalMinMaxScaler
    from leanrank.data.scaling.normalizers import GlobalStandardScaler as GlobalStandardScaler
    from leanrank.data.scaling.normalizers import QueryMinMaxScaler as QueryMinMaxScaler
    from leanrank.data.scaling.normalizers import QueryRankScaler as QueryRankScaler
    from leanrank.data.scaling.normalizers import QueryStandardScaler as QueryStandardScaler
    from leanrank.data.scaling.normalizers import make_normalizer as make_normalizer
    from leanrank.data.scaling.normalizers import normalizer_from_dict as normalizer_from_dict
    from leanrank.data.sets.public_sets import fetch as fetch
    from leanrank.data.sets.sample import load_sample as load_sample
    from leanrank.data.sets.sample import sample_weights as sample_weights
    from leanrank.data.sets.synthetic import make_ranking as make_ranking
    from leanrank.data.sets.synthetic import stream_ranking as stream_ranking
    from leanrank.data.store.mapped_file import write_store as write_store
    from leanrank.data.streams import RankingStream as RankingStream
    from leanrank.data.streams import open_stream as open_stream
    from leanrank.data.tables.frames import from_frame as from_frame
    from leanrank.data.tables.frames import to_frame as to_frame
    from leanrank.data.tables.parquet import dump_parquet as dump_parquet
    from leanrank.data.tables.parquet import load_parquet as load_parquet

__getattr__, __dir__, __all__ = attach(
    "leanrank.data",
    {
        "leanrank.data.clicks.click_log": "ClickLog Preferences click_preferences read_clicks",
        "leanrank.data.formats": "dump load",
        "leanrank.data.tables.frames": "from_frame to_frame",
        "leanrank.data.letor.files": "dump_letor load_letor",
        "leanrank.data.logs.clicks": "read_engine_clicks",
        "leanrank.data.logs.features": "feature_log",
        "leanrank.data.logs.join": "join_judgments",
        "leanrank.data.logs.judgments": "read_judgments",
        "leanrank.data.scaling.normalizers": (
            "GlobalMinMaxScaler GlobalStandardScaler QueryMinMaxScaler QueryRankScaler "
            "QueryStandardScaler make_normalizer normalizer_from_dict"
        ),
        "leanrank.data.tables.parquet": "dump_parquet load_parquet",
        "leanrank.data.clicks.propensities": "ClickWeights click_weights estimate_propensities",
        "leanrank.data.sets.public_sets": "fetch",
        "leanrank.data.ranking_data": "RankingData",
        "leanrank.data.sets.sample": "load_sample sample_weights",
        "leanrank.data.store.mapped_file": "write_store",
        "leanrank.data.streams": "RankingStream open_stream",
        "leanrank.data.sets.synthetic": "make_ranking stream_ranking",
        "leanrank.data.clicks.synthetic": "make_clicks",
    },
)
