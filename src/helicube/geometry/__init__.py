"""Field to surface, repair, budget, export, render (numpy only)."""
