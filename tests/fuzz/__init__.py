"""Random inputs for every reader, state file, model file and ranker: ``make fuzz``.

A target is one function, decorated with ``tests.fuzz.harness.target``, that draws an input, uses it
and asserts what must hold. It may raise a LeanrankError; anything else is a finding.
"""
