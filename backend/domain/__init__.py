"""Pure words, recipes, rules, planners and renderers: no I/O, no clock, no randomness."""
