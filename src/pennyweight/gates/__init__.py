"""Gates: rules about estimates, and the verdicts they give."""
