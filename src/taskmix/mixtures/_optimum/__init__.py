"""The best mixture by a forecast: targets, limits, the optimum and how far it can be trusted."""
