"""The console: pages that show a bank to people, rendered by the service without scripts.

Each page calls the routes of the API for its user, so it shows exactly the data that the API returns.
"""
