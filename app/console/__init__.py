"""The console: a bank for people to look at, as pages that the service renders and that need no script.

Each page shows what a route of the API answers to the same user: it calls the route, and has no way around it.
"""
