"""How the base image is made. The recipe is the files beside this one: `build.recipe` is their hash."""
