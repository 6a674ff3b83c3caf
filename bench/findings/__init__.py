"""Do findings spare an agent what it knows already, and is nothing that they tell stale?"""
