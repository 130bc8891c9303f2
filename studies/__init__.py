"""Studies: experiments on Armwise itself, run from a checkout."""
