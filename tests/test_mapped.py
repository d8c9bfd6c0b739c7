"""Values in temporary files that are mapped."""

import warnings

import numpy as np

from leanrank._mapped import Spool


def test_a_spool_closes_its_file_and_leaves_the_map():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spool, unread = Spool(np.float64), Spool(np.int32)
        spool.append([1, 2])
        unread.append([3])
        values = spool.mapped()
        files = spool._file, unread._file
        del spool, unread
    assert all(file.closed for file in files)
    assert values.tolist() == [1.0, 2.0]
