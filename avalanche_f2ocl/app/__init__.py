"""A page in the browser on which to teach a model with pictures; it needs the extra [app]."""
