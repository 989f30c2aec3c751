"""Fast twins of hot functions in nn, chosen by device."""
