"""Which features are chosen again when the queries change."""
