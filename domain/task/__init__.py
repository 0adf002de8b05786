"""The task aggregate: events → state → evolve → decide → react, one module each."""
