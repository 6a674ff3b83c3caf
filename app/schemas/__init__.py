"""The bodies of requests and answers that are not a finished run, by the routes that take and give them."""
