"""The benchmark of short queries: procedures that are searched by a name, such as "cancel order"."""
