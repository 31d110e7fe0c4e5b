"""What a run may spend and what it cost: budget, ledger, attribution of tokens to causes, prices, prompt caches."""
