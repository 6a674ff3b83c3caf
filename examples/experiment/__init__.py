"""The experiment: does memory help an agent in an environment, how much, where not, and at what price?"""
