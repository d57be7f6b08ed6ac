"""The planted bugs: for each guard one that takes it out, and the tests that must turn red then."""

from punchlist_faults import planted_client, planted_engine, planted_shared, planted_store
from punchlist_faults.mutant import Mutant

__all__ = ["MUTANTS", "Mutant"]

MUTANTS = (*planted_store.MUTANTS, *planted_engine.MUTANTS, *planted_shared.MUTANTS, *planted_client.MUTANTS)
