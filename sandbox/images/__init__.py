"""How the base image is made. The recipe is these files; RECIPE changes when any of them does."""
