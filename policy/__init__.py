"""Computes the order of cases, the slate to serve and the gate's verdict, from features and logged decisions."""
