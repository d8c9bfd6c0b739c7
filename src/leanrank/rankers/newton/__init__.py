"""Convex losses with a penalty, solved by Newton unless told otherwise."""
