"""LETOR/SVMlight text: read in parallel, read in chunks, written."""
