"""HTTP by area. A controller checks shapes and calls the service or the reads; it decides nothing."""
