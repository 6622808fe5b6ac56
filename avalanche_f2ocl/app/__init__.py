"""A page in the browser to teach a model by pictures; needs the extra [app]."""
