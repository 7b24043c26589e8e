"""Laws of mixtures: how the losses of a model depend on the shares of what it was trained on."""
