"""The database operator of the demo, as a world of the experiment."""
