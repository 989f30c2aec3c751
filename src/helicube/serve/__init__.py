"""HTTP API, job queue and web studio."""
