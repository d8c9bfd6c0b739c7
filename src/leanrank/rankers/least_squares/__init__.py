"""RankRLS and its greedy and kernel forms."""
