"""Tables: data frames, Arrow, Parquet and CSV."""
