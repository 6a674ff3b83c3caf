"""BabyAI missions, by the package ``minigrid``, which is not a dependency: without it they are skipped.

Source: Chevalier-Boisvert et al. 2019, BabyAI: A Platform to Study the Sample Efficiency of Grounded Language Learning.
"""
