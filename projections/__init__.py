"""Read models: folds of the log into tables that can be thrown away and rebuilt."""
