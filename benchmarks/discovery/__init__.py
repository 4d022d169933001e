"""How well intents find their tools, beside plain baselines, on data sets that nobody here wrote."""
