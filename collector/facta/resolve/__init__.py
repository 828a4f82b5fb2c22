"""Calls, turns and sessions: a pure function of the set of observations, whatever their order."""
