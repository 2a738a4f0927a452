"""Published scores as data; `routing.profile` reads them."""
