"""The process: settings, database, identity, routes, providers, jobs and commands."""
