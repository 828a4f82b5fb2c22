"""The words that every room shares: records as received, sealed values, facts, observations."""
