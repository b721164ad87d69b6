"""What a model costs and what a machine gives: counted, measured and drawn."""
