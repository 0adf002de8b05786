"""Stand-ins that speak the real protocols, so that the real clients are always the ones tested."""
